"""What do all routes share? Who is let in, what their form says, and the page they get.

A page speaks the language its visitor chose with the links at its foot, else the one the lender
set, else the first that the browser asks for and the service has, else English. A form belongs to a
conversation or to a visitor: it carries a token that others cannot make.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import pear
from pear.elicitation import Words
from pear.elicitation.says import DoneStep
from pear.elicitation.words import Catalogue, catalogue, languages
from pear.errors import PearError
from pear.problem import Problem
from pear.service.conversations import Conversations, View
from pear.service.engine import EngineMaker, Searchers, make_engine, stated_problem
from pear.service.lender.staff import Keys, SignIn
from pear.service.operation import Metrics, Traces
from pear.service.schemas import ServiceError, retry_later
from pear.service.settings import Settings
from pear.service.store.database import Conversation, Database, Store, new_token
from pear.service.store.tables import upgrade
from pear.service.store.upkeep import Scrubber

PACKAGE = "pear.service"
"""Where the texts and templates of the pages are, beside the texts of :mod:`pear.elicitation`."""

HOLD_SECONDS, MOST_HELD = 1.0, 200
"""How long a refusal for asking too often is held back, and how many are at once."""


@dataclass
class Service:
    """The parts of a running service."""

    settings: Settings
    problem: Problem
    database: Database
    store: Store
    keys: Keys
    searchers: Searchers
    conversations: Conversations
    scrubber: Scrubber
    words: Mapping[str, Words]
    metrics: Metrics
    traces: Traces
    per_link: RateLimit
    per_key: RateLimit
    per_stranger: RateLimit
    forms: FormTokens = field(default_factory=lambda: FormTokens(b""))
    sign_in: SignIn | None = None
    ready: bool = False
    _held: int = 0

    async def start(self) -> None:
        """Bring the tables up to date and start the searchers."""
        await self.database.run(upgrade, self.database.engine)
        self.forms = FormTokens(await self.database.run(self.keys.secret))
        if self.settings.demo_key:
            await self.database.run(self.keys.ensure, "demonstration", self.settings.demo_key)
        await run_in_threadpool(self.searchers.start)
        told = self.problem.with_unused(self.searchers.facts.get("unused", ()))
        self.words = {name: Words(told, words.texts) for name, words in self.words.items()}
        await self.database.run(self.store.serve, *self.conversations.serves)
        self.scrubber.start()
        self.ready = True

    async def stop(self) -> None:
        """End the searchers and the database's connections."""
        self.ready = False
        await self.scrubber.stop()
        await run_in_threadpool(self.searchers.stop)
        await run_in_threadpool(self.database.close)
        await run_in_threadpool(self.traces.stop)

    async def forget(self, conversation: Conversation) -> None:
        """Delete a conversation and everything in it, at once."""
        await self.database.run(self.store.delete, conversation.id)
        self.scrubber.start()

    def pace(self, limit: RateLimit, name: str) -> None:
        """Refuse a request that comes too soon after too many others."""
        seconds = limit.wait(name)
        if seconds:
            raise retry_later(
                429, f"Too many requests; try again in {seconds:.0f} seconds.", seconds
            )

    async def hold(self) -> None:
        """Who asks too often waits for the refusal too, so that asking on takes nothing of others.

        A person at a page does not notice; many at once are refused without waiting.
        """
        if self._held < MOST_HELD:
            self._held += 1
            try:
                await asyncio.sleep(HOLD_SECONDS)
            finally:
                self._held -= 1

    async def enter(self, request: Request, token: str) -> Conversation:
        """The conversation of a link, for who knows its PIN, where there are PINs.

        The lender makes the link, and so could act for the person; the PIN is the person's own.
        """
        conversation = await self.behind(request, token)
        if not self.settings.pin:
            return conversation
        if conversation.pin_hash is None:
            raise PinNeeded(chosen=False)
        proof = request.cookies.get(pin_cookie(conversation), "")
        if hmac.compare_digest(proof.encode(), self.pin_proof(conversation).encode()):
            return conversation
        pin = request.headers.get("x-pin", "")
        if not pin or not await self.check_pin(conversation, pin):
            raise PinNeeded(chosen=True)
        return conversation

    async def behind(self, request: Request, token: str) -> Conversation:
        """The conversation of a link, at the pace of one link; who invents links is a stranger."""
        self.pace(self.per_link, token[:64])
        try:
            conversation = await self.conversations.open(token)
        except ServiceError as error:
            if error.status == 404:
                self.pace(self.per_stranger, address_of(request))
            raise
        request.state.facts = {"conversation": conversation.id}
        return conversation

    def pin_proof(self, conversation: Conversation) -> str:
        """The proof a browser holds after the PIN of a conversation was given."""
        return self.forms.derived("pin", conversation.id, conversation.pin_hash or "")

    async def check_pin(self, conversation: Conversation, pin: str) -> bool:
        """Whether a PIN is the person's; after some wrong ones nobody gets in for a while."""
        wait = conversation.pin_until - time.time()
        if wait > 0:
            raise retry_later(429, "Too many wrong PINs; wait before you try again.", wait)
        right = await run_in_threadpool(pin_fits, pin, conversation.pin_hash or "")
        tries = 0 if right else conversation.pin_tries + 1
        until = time.time() + PIN_WAIT_SECONDS if tries >= PIN_TRIES else 0.0
        if tries or conversation.pin_tries:
            again = 0 if until else tries
            await self.database.run(self.store.pin_tried, conversation.id, again, until)
        return right

    async def choose_pin(self, conversation: Conversation, pin: str) -> Conversation:
        """Keep the PIN a person chose when they first opened their link."""
        if not (pin.isascii() and pin.isdigit() and 4 <= len(pin) <= 12):
            raise ServiceError(422, "A PIN has 4 to 12 digits.", errors=[("pin", "4 to 12 digits")])
        stored = await run_in_threadpool(pin_hash, pin)
        if not await self.database.run(self.store.set_pin, conversation.id, stored):
            raise ServiceError(409, "A PIN was chosen already.")
        return replace(conversation, pin_hash=stored)


class PinNeeded(ServiceError):
    """Only the person's own PIN opens this; ``chosen`` once there is one."""

    def __init__(self, *, chosen: bool) -> None:
        words = "This conversation is opened with the PIN its person chose: send it as 'X-PIN'."
        if not chosen:
            words = "Choose a PIN first, with PUT .../pin; the link alone opens nothing."
        super().__init__(401, words, {"WWW-Authenticate": "PIN"})
        self.chosen = chosen


def pin_cookie(conversation: Conversation) -> str:
    """The name of the cookie that holds the proof of a conversation's PIN."""
    return f"pear_pin_{conversation.id[:12]}"


def service_of(request: Request) -> Service:
    """The running service."""
    service: Service = request.app.state.service
    return service


def address_of(request: Request) -> str:
    """The address a request comes from."""
    return request.client.host if request.client else "unknown"


def make_service(settings: Settings, maker: EngineMaker | None = None) -> Service:
    """All parts of a service, not started yet; ``maker`` makes the engine of each searcher."""
    problem, traces = stated_problem(settings.problem), Traces(settings.traces)
    database = Database(settings.database, traces)
    store, keys = Store(database), Keys(database)
    searchers = Searchers(
        maker or partial(make_engine, settings),
        settings.searchers,
        seconds=settings.search_seconds,
        most_waiting=settings.most_waiting,
        traces=traces,
    )
    if settings.language:
        catalogue(settings.language, PACKAGE)  # refused with those there are
    return Service(
        settings=settings,
        problem=problem,
        database=database,
        store=store,
        keys=keys,
        searchers=searchers,
        conversations=Conversations(store, searchers, problem, settings),
        words={
            language: Words(problem, catalogue(language, PACKAGE))
            for language in languages(PACKAGE)
        },
        scrubber=Scrubber(database, settings.scrub_seconds),
        metrics=Metrics(),
        traces=traces,
        per_link=RateLimit(settings.link_per_minute),
        per_key=RateLimit(settings.key_per_minute),
        per_stranger=RateLimit(settings.stranger_per_minute),
    )


# Pace and proofs


class FormTokens:
    """Tokens in forms that a foreign page cannot know.

    A token belongs to what the form is about (a conversation's link or a sign-in), and carries
    what its page showed: the conversation's version and, where one was asked, the question.

    >>> tokens = FormTokens(b"secret")
    >>> tokens.shown(tokens.token("link", "3.ab"), "link")
    '3.ab'
    >>> tokens.shown(tokens.token("link"), "other") is None
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, subject: str, shown: str = "") -> str:
        """The token for forms about a subject, on a page that showed this."""
        content = f"form:{subject}:{shown}".encode("utf-8", "surrogatepass")
        return f"{shown}~{hmac.new(self._secret, content, hashlib.sha256).hexdigest()}"

    def shown(self, token: str, subject: str) -> str | None:
        """What the page of a form showed; None where the token is not for its subject."""
        shown = token.rpartition("~")[0]
        expected = self.token(subject, shown).encode("utf-8", "surrogatepass")
        fits = hmac.compare_digest(expected, token.encode("utf-8", "surrogatepass"))
        return shown if fits else None

    def derived(self, *parts: str) -> str:
        """A secret that only this service can make, the same each time for the same parts."""
        content = "\0".join(("derived", *parts)).encode("utf-8", "surrogatepass")
        digest = hmac.new(self._secret, content, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class RateLimit:
    """A limit on the requests per minute of each name; a full minute's worth may come at once.

    Kept in the memory of one process: several web processes allow that many times more.

    >>> limit = RateLimit(60, clock=lambda: 0.0)
    >>> [limit.wait("link") for _ in range(60)] == [0.0] * 60, limit.wait("link")
    (True, 1.0)
    """

    def __init__(
        self,
        per_minute: int,
        *,
        most_names: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._names = most_names
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, name: str) -> float:
        """0 when the request may go on, else the seconds until the next one may."""
        now = self._clock()
        with self._lock:
            left, since = self._left.pop(name, (self._most, now))
            left = min(self._most, left + (now - since) * self._per_second)
            allowed = left >= 1
            self._left[name] = (left - 1 if allowed else left, now)
            while len(self._left) > self._names:
                self._left.popitem(last=False)
        return 0.0 if allowed else max(1.0, math.ceil((1 - left) / self._per_second))


PIN_TRIES, PIN_WAIT_SECONDS = 5, 15 * 60
"""Wrong PINs in a row after which the right one is not taken either, and for how long."""


def pin_hash(pin: str) -> str:
    """What is stored in place of a PIN, which can be guessed: slow to compute, with a salt."""
    salt = secrets.token_hex(8)
    return f"{salt}:{_slow_hash(pin, salt)}"


def pin_fits(pin: str, stored: str) -> bool:
    """Whether a PIN is the one stored.

    >>> pin_fits("4711", pin_hash("4711")), pin_fits("4712", pin_hash("4711"))
    (True, False)
    """
    salt, _, expected = stored.partition(":")
    return hmac.compare_digest(_slow_hash(pin, salt), expected)


def _slow_hash(pin: str, salt: str) -> str:
    text = pin.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(text, salt=salt.encode(), n=2**14, r=8, p=1).hex()


# Forms

VISITOR = "pear_visitor"
"""Cookie of a visitor without a link: forms on the first page and the sign-in belong to it."""

MOST_FIELDS = 600


async def form_of(service: Service, request: Request, subject: str) -> tuple[dict[str, str], str]:
    """The fields of a form about a subject, and what its page showed.

    A form that is not from us changes nothing.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise ServiceError(415, "Send this as a form.")
    try:
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    except HTTPException:
        raise ServiceError(400, "The form cannot be read.") from None
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    shown = service.forms.shown(fields.pop("csrf", ""), subject) if subject else None
    if shown is None:
        raise ServiceError(403, "The form's token does not fit; load the page again.")
    return fields, shown


def cookie_subject(request: Request) -> str:
    """What forms without a link belong to: the visitor's cookie."""
    visitor = request.cookies.get(VISITOR, "")
    return f"visitor:{visitor}" if visitor else ""


def sealed(service: Service, request: Request, render: Callable[[str], Response]) -> Response:
    """A page whose forms belong to this visitor, who gets a cookie if there is none yet."""
    visitor = request.cookies.get(VISITOR, "")
    fresh = not visitor or len(visitor) > 100
    if fresh:
        visitor = new_token()
    response = render(service.forms.token(f"visitor:{visitor}"))
    if fresh:
        set_cookie(service, response, VISITOR, visitor)
    return response


def set_cookie(
    service: Service,
    response: Response,
    name: str,
    value: str,
    *,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """A cookie that scripts cannot read and other sites cannot use."""
    response.set_cookie(
        name,
        value,
        httponly=True,
        samesite=same_site,
        secure=service.settings.cookies_are_secure,
        path="/",
    )


def new_nonce() -> str:
    """A name for a form as it was shown, so that sending it twice does it once."""
    return secrets.token_urlsafe(12)


def whole_number(form: Mapping[str, str], name: str) -> int:
    """A number that a form of ours holds."""
    text = form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise ServiceError(422, f"The form's '{name}' must be a whole number.")
    return int(text)


# Pages


ENVIRONMENT = Environment(
    loader=PackageLoader(PACKAGE, "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

LANGUAGE = "pear_language"
"""Cookie of the language that a visitor chose."""


def words_of(request: Request) -> Words:
    """The words for whoever sent this request."""
    service = service_of(request)
    chosen = request.cookies.get(LANGUAGE, "")
    wanted = [chosen, service.settings.language, *accepted(request), "en"]
    return next(service.words[language] for language in wanted if language in service.words)


def accepted(request: Request) -> list[str]:
    """The languages a browser asks for, best first, without their countries."""
    found = []
    for place, part in enumerate(request.headers.get("accept-language", "")[:500].split(",")):
        name, _, weight = part.strip().lower().partition(";q=")
        try:
            found.append((-float(weight or 1), place, name.partition("-")[0]))
        except ValueError:
            continue
    return [name for _weight, _place, name in sorted(found)]


def page(
    request: Request,
    template: str,
    status: int = 200,
    *,
    environment: Environment = ENVIRONMENT,
    words: Words | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page from a template; what a template may leave out has a value here."""
    service, words = service_of(request), words or words_of(request)
    settings = service.settings
    content = {
        "t": words.texts,
        "words": words,
        "demo": settings.demo,
        "pin": settings.pin,
        "human_link": settings.human_link,
        "package_version": pear.__version__,
        "languages": {code: other.texts("language.name") for code, other in service.words.items()},
        "back": _again(request, str(context.get("token", ""))),
        "token": "",
        "said": "",
        "notices": (),
        "reported": (),
        "key_name": "",
        "correct_link": "",
        **context,
    }
    return HTMLResponse(environment.get_template(template).render(**content), status)


def _again(request: Request, token: str) -> str:
    """Where to see the same again, in another language: what was sent is not sent twice."""
    if request.method == "GET":
        return request.url.path
    return f"/c/{token}/now" if token else "/"


def day(at: float, texts: Catalogue) -> str:
    """A date people can read: 3 March 2026."""
    moment = time.gmtime(at)
    month = texts("date.months").split()[moment.tm_mon - 1]
    return texts("date.day", day=moment.tm_mday, month=month, year=moment.tm_year)


def notices(view: View, words: Words) -> list[str]:
    """What a person is told about how this came about."""
    found = []
    for notice in view.told:
        values = {**vars(notice), "until": day(notice.until, words.texts)}
        if not isinstance(notice.steps, str):
            values["steps"] = "; ".join(_earlier_step_words(step, words) for step in notice.steps)
        found.append(words.texts(f"notice.{values.pop('code')}", **values))
    return found


def _earlier_step_words(step: DoneStep, words: Words) -> str:
    """A step of an earlier plan; where the problem no longer has it, as it was said then."""
    try:
        return words.step(step)
    except PearError:
        return step.words


def reference_of(number: str) -> str:
    """The start of a number, as people read it out: ``2a99 ed63``."""
    return f"{number[:4]}\N{NO-BREAK SPACE}{number[4:8]}".strip()
