"""What do the name of a column and its values reveal: who a person is, where they live, what they
owe?

Guesses in English, German, Italian and Spanish, for first drafts and warnings only. Where a guess
is wrong, it errs on the side of leaving a person alone; someone always reviews it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """Words of one meaning, without accents: whole ones, and ``stems`` found inside of words."""

    whole: frozenset[str]
    stems: tuple[str, ...] = ()

    def has(self, word: str) -> bool:
        return word in self.whole or any(stem in word for stem in self.stems)

    def found_in(self, name: str) -> bool:
        """Whether a word of a name is one of these."""
        return any(self.has(_without_accents(word)) for word in words_of(name))


def _vocabulary(whole: str, stems: str = "") -> Vocabulary:
    return Vocabulary(frozenset(whole.split()), tuple(stems.split()))


PERSONAL = _vocabulary(
    """age aged agecat agegroup ages sex race black white asian latino latina afam male man woman
    men women boy girl single wife husband spouse dob born kid baby dep faith church jewish muslim
    christian catholic protestant hindu buddhist sikh caste tribe skin color colour gay lesbian lgbt
    native nation country origin ancestry health illness disease genetic union political surname
    firstname language personal family relationship household sibling siblings mother father parents
    alter rasse ledig glaube frau mann schwarz weiss sprache herkunft nachname vorname familie
    eta sesso genere razza etnia nato nata fede nero nera bianco bianca uomo donna celibe nubile
    figli figlio figlia famiglia salute cognome lingua civile
    edad sexo genero raza negro negra blanco blanca hombre mujer varon hembra casado casada hijo
    hija hijos hijas familia salud idioma apellido nacido nacida civil
    âge sexe naissance enfants""",
    """gender female ethnic racial hispan nonwhite caucas african indigen minorit religi disab
    handicap pregnan marital married divorc separated widow immigra migrant migration refugee
    foreign national citizen birth dependent dependant child kids sexual veteran
    geschlecht geburt hautfarbe staatsangehor auslander auslandisch konfession behinder schwanger
    familienstand famges gastarb verheiratet geschieden verwitwet kinder weiblich mannlich
    minderheit gewerkschaft krankheit gesundheit
    nazional cittadin nascita disabil invalid incinta gravidanza sposat divorziat vedov stranier
    minoranz maschi femmin sindacat
    nacional ciudadan nacimiento discapac embaraz solter viud extranjer inmigra minoria sindicat
    etnic""",
)
"""Who a person is: protected, and never to be changed on a bank's advice."""

PLACE = _vocabulary(
    """state city town village county zip area location place branch address street ward suburb
    borough tract census msa metro metropolitan rural urban latitude longitude lat lon geo
    plz ort stadt kreis land filiale
    cap comune citta quartiere
    barrio comunidad sucursal ciudad calle""",
    """region district distrito postal postcode zipcode postleit provinc municip neighb gemeinde
    bezirk bundesland""",
)
TIME = _vocabulary(
    """date datetime timestamp year month day weekday quarter vintage since earliest latest cohort
    datum jahr monat anno mese giorno fecha ano mes dia trimestre""",
    "birthdate geburtsjahr",
)
RATE = _vocabulary(
    """rate rates unemp unem euribor libor gdp cpi interest index tax
    zins zinsen zinssatz tasso tassi tasa tasas paro""",
    "unemploy inflation arbeitslos disoccupaz desemple",
)
JUDGEMENT = _vocabulary(
    """score scores rating grade class fico schufa weight wgt fnlwgt record records previous prior
    ever klasse voto classe clase calificacion punteggio puntaje puntuacion""",
    "hist bankrupt foreclos insolven bonitat storic",
)
CODE = _vocabulary("code codes codice codigo kennziffer")
IDENTIFIER = _vocabulary("id uuid identifier number no index key nr rownames kennung codice")

OWED = _vocabulary(
    """due late owed dti mora debito debiti lien liens collections loss losses pubrec
    verzug mahnung mahnungen verlust perdita perdite perdida""",
    """debt overdue delinq dlq arrear liabil default utiliz utilis schuld ruckstand auslastung
    arretrat insolut ritard deuda atraso impago vencid""",
)
"""What no plan should increase."""

BORROWED = _vocabulary(
    "credit kredit kredite mutuo mutui credito crediti creditos amount betrag importo importe",
    "loan mortgag instalment installment darlehen prestit prestamo hipotec",
)
"""What a plan should not ask for more of; a longer term of it is another matter."""

EARNED = _vocabulary(
    """income salary wage wages earnings saving savings asset assets wealth education schooling
    experience seniority tenure years
    einkommen gehalt lohn ersparnis ersparnisse bildung berufserfahrung
    reddito stipendio risparmi risparmio patrimonio istruzione esperienza anzianita
    ingreso ingresos salario sueldo ahorro ahorros patrimonio educacion experiencia antiguedad""",
    "vermogen",
)
"""What no plan should decrease, if only because it cannot be undone."""

GRANTED = _vocabulary(
    """grant granted admit admitted hire hired repaid paid eligible pass passed qualified good
    benign success successful
    gut bewilligt angenommen zugesagt bezahlt buono concesso concessa pagato bueno concedido
    pagado""",
    "approv accept creditworth genehmig kreditwurdig accett aprob acept",
)
REFUSED = _vocabulary(
    """deny denied denial bad fraud fail failed poor late loss
    schlecht ausfall cattivo negato negata malo negado""",
    """refus reject declin default delinq dlq bankrupt foreclos arrear overdue charged recidiv
    malignan insolven abgelehnt ablehn rifiut respint rechaz deneg impago moros""",
)
NEGATION = _vocabulary("no not non un without never kein keine keinen nicht ohne senza sin")
YES = frozenset({"yes", "y", "true", "t", "1", "1.0", "ja", "si", "sì", "sí", "wahr", "vero"})
NO = frozenset({"no", "n", "false", "f", "0", "0.0", "nein", "falsch", "falso"})
PLACEHOLDERS = _vocabulary(
    """unknown missing none na nan null other others ignore unbekannt sonstige sconosciuto altro
    desconocido otro otros"""
)
"""Values that stand for "somebody did not say": no plan proposes one."""


def words_of(name: str) -> list[str]:
    """The words of a column name, in lower case.

    >>> words_of("NumberOfTime60-89DaysPastDueNotWorse")
    ['number', 'of', 'time', '60', '89', 'days', 'past', 'due', 'not', 'worse']
    >>> words_of("native_country")
    ['native', 'country']
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Za-z])([0-9])", r"\1 \2", spaced)
    return re.findall(r"[^\W_]+", spaced.lower())


def _without_accents(word: str) -> str:
    spelled = unicodedata.normalize("NFD", word.replace("ß", "ss"))
    return "".join(letter for letter in spelled if not unicodedata.combining(letter))


def is_personal(name: str, values: Iterable[str] = ()) -> bool:
    """Whether a column tells who a person is, by its name or by at least two of its values.

    >>> is_personal("Familienstand"), is_personal("is_hispanic"), is_personal("wages")
    (True, True, False)
    >>> is_personal("x7", ["male single", "female divorced"]), is_personal("x8", ["rent", "own"])
    (True, False)
    """
    if PERSONAL.found_in(name):
        return True
    said = [value for value in values if _is_personal_value(str(value))]
    return len(said) >= 2 or {str(value).strip().lower() for value in values} == {"m", "f"}


def _is_personal_value(value: str) -> bool:
    # One word is clear; of a longer text a single common word says nothing ("single family home").
    words = [_without_accents(word) for word in words_of(value)]
    return bool(words) and PERSONAL.has(words[0]) and len(words) <= 4


def why_fixed(name: str) -> str:
    """Why nobody can change what a name stands for, in words; empty if they might.

    >>> why_fixed("regional_unemployment"), why_fixed("zip_code"), why_fixed("savings")
    ('a place', 'a place', '')
    >>> why_fixed("unemp"), why_fixed("credit_history"), why_fixed("issue_month")
    ('a rate nobody sets alone', 'history, or a judgement of others', 'a point in time')
    """
    if OWED.found_in(name):
        return ""  # A count of late payments can fall, whatever else its name says.
    for words, vocabulary in (
        ("a place", PLACE),
        ("a point in time", TIME),
        ("a rate nobody sets alone", RATE),
        ("history, or a judgement of others", JUDGEMENT),
        ("a code", CODE),
    ):
        if vocabulary.found_in(name):
            return words
    return ""


def is_owed(*names: str) -> bool:
    """Whether a name or a label sounds like something that should not be raised."""
    return any(OWED.found_in(name) for name in names)


def is_borrowed(name: str) -> bool:
    """Whether more of something would mean to borrow more.

    >>> is_borrowed("NumberOfLoans"), is_borrowed("loan_term")
    (True, False)
    """
    term = {"term", "duration", "months", "laufzeit", "durata", "duracion", "plazo"}
    return BORROWED.found_in(name) and term.isdisjoint(words_of(name))


def is_earned(name: str) -> bool:
    """Whether a name sounds like something that should not be lowered; ratios do not.

    >>> is_earned("monthly_income"), is_earned("loan_to_income"), is_earned("income_ratio")
    (True, False, False)
    """
    ratio = {"to", "ratio", "share", "percent", "per", "zu", "su"} & set(words_of(name))
    return EARNED.found_in(name) and not OWED.found_in(name) and not ratio


def outcome(text: str) -> int:
    """What a class or a target says about the decision: 1 favourable, -1 not, 0 unclear.

    >>> [outcome(text) for text in ("approved", "not approved", "deny", "bad", ">50K")]
    [1, -1, -1, -1, 0]
    """
    good, bad = GRANTED.found_in(text), REFUSED.found_in(text)
    if good == bad:
        return 0
    return (1 if good else -1) * (-1 if NEGATION.found_in(text) else 1)


def is_answer(category: str) -> bool:
    """Whether a category is an answer, and not a mark for a missing one.

    >>> [category for category in ("rent", "?", "other", "unknown") if is_answer(category)]
    ['rent']
    """
    words = words_of(category)
    return bool(words) and not all(PLACEHOLDERS.has(word) for word in words)


def is_identifier(name: str) -> bool:
    """Whether a name sounds like a row number."""
    words = words_of(name)
    return bool(words) and (IDENTIFIER.has(words[-1]) or name.lower().startswith("unnamed"))


def unit_of(name: str) -> tuple[str, str]:
    """A name without the unit in brackets at its end, and the unit.

    >>> unit_of("Monthly income (€)"), unit_of("rate [%]"), unit_of("income")
    (('Monthly income', '€'), ('rate', '%'), ('income', ''))
    """
    found = re.fullmatch(r"(.*\w)\s*[(\[]\s*([^()\[\]\s]{1,8})\s*[)\]]", name)
    return (found[1], found[2]) if found else (name, "")


def label_of(name: str) -> str:
    """A name as people would say it, empty if it reads well as it is.

    >>> label_of("MonthlyIncome"), label_of("monthly_income")
    ('monthly income', '')
    """
    label = " ".join(words_of(name))
    return "" if label == name.replace("_", " ") else label
