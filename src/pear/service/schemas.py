"""What do the requests and answers of the API look like, and what is said when something is wrong?

Errors have one shape on every route (RFC 9457).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
)

Value = StrictBool | StrictInt | StrictFloat | StrictStr | None
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]

RECORD = {
    "age": 34, "sex": "female", "children": 2, "years_at_bank": 6,
    "education": "vocational training", "occupation": "service work", "contract": "temporary",
    "monthly_income": 1850.0, "savings": 900.0, "debt_payments": 210.0, "card_use": 55,
    "overdue": 1, "loan_amount": 8000, "loan_term": 36, "guarantor": False,
}  # fmt: skip


QUESTION = {
    "number": 1,
    "progress": "About 4 more after this.",
    "plans": [
        {"steps": [{"words": "Pay your 1 overdue bill", "takes": "4 weeks, €150 once"}]},
        {"steps": [{"words": "Find someone to vouch for you", "takes": "3 weeks"}]},
    ],
}


class Strict(BaseModel):
    """A request; fields that are not declared are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewConversation(Strict):
    """A refused applicant who is to get a link."""

    record: dict[Name, Value] = Field(
        examples=[RECORD],
        max_length=500,
        description="A value for each feature, as the decision was made with.",
    )
    reference: Text | None = Field(
        None, examples=["application 4711"], description="What you call this case."
    )
    days: int | None = Field(
        None, ge=1, le=366, examples=[30], description="Days until an unused link ends."
    )


class Act(Strict):
    """Something a person does about what they were shown; ``shown`` is that, as they read it."""

    shown: str = Field(
        max_length=60,
        examples=["0.3f2a9c1e5b7d4a60"],
        description="From the view that the person saw.",
    )


class Answer(Act):
    """The answer to the question shown: a plan's number from 0, "same" or "none"."""

    choice: Literal["same", "none"] | Annotated[int, Field(ge=0, le=9)] = Field(
        examples=[0], description="0 for plan A, 1 for plan B and so on, or a word."
    )


class NewLimit(Act):
    """Something this person cannot do."""

    kind: Literal["feature", "value", "beyond", "action"] = Field(examples=["feature"])
    feature: Name | None = Field(None, examples=["savings"])
    value: Value = Field(None, examples=[3000])
    direction: Literal["up", "down"] | None = Field(None, examples=["up"])
    action: Name | None = None


class Lift(Act):
    """Limits to lift, by their ids with commas between them."""

    ids: str = Field(max_length=200)


class Undo(Act):
    """Take back the last answer, or all answers after so many."""

    kept: int | None = Field(None, ge=0, le=1000, examples=[0])


class Pin(Strict):
    """A PIN of the person's own."""

    pin: str = Field(min_length=4, max_length=12, pattern="^[0-9]+$", examples=["2846"])


class StepsDone(Act):
    """How many of the plan's steps, from the first, are done."""

    steps: int = Field(ge=1, le=100, examples=[1])


class ChangedRecord(Act):
    """The person's data as they are now."""

    record: dict[Name, Value] = Field(examples=[RECORD], max_length=500)


class NewKey(Strict):
    """A name for a new key."""

    name: Annotated[Text, StringConstraints(min_length=1)] = Field(examples=["Back office"])
    roles: list[Literal["create", "read", "administer"]] = Field(
        ["create", "read"], min_length=1, max_length=3, examples=[["create"]]
    )
    owner: Text = Field("", examples=["A. Person"])
    days: int | None = Field(None, ge=1, le=3660, description="Until it ends; else it does not.")


class Decision(Strict):
    """What the lender says of a correction."""

    confirm: bool = Field(examples=[True])


class Correction(BaseModel):
    """A correction to what nobody changes by themselves, as a person asked for it."""

    id: str
    reference: str | None
    record: dict[str, Value]
    asked: dict[str, Value]


class LogEntry(BaseModel):
    """One thing done on the lender's side."""

    number: int
    at: float
    key_id: str
    key_name: str
    address: str
    action: str
    target: str


class Limit(BaseModel):
    """A limit in force, with the id to lift it by and what it means in words."""

    id: str
    kind: str
    words: str
    feature: str | None = None
    value: Value = None
    direction: str | None = None
    action: str | None = None


class Step(BaseModel):
    """One step of a plan; ``refusals`` are the limits "I can't do this" may mean.

    ``weeks``, ``once`` and ``monthly`` are what the problem says it takes, where it says so.
    """

    words: str
    feature: str
    before: Value
    after: Value
    score_before: float = Field(description="In whole points of 100, as a share.")
    score_after: float
    weeks: float | None = None
    once: float | None = None
    monthly: float | None = None
    takes: str = Field("", description="The same in words.")
    reason: str = ""
    refusals: list[dict[str, Any]] = []


class PlanCard(BaseModel):
    """A plan as it is shown: ordered steps, and what it takes and leads to as a whole."""

    steps: list[Step]
    score: float = Field(description="Where the plan leads to, as a share of 100 points.")
    effort: float = Field(description="Effort by what the person said, relative to the best plan.")
    time: str = ""
    money: str = ""
    loan: str = Field("", description="What they would get in the end, where the problem knows.")
    loan_in_all: str = ""
    thin: bool = Field(False, description="Whether it is only just enough.")


class Line(BaseModel):
    """One thing to do or to know, and what each plan says about it."""

    label: str
    now: str = ""
    cells: list[str]


class Question(BaseModel):
    """Which of these plans would you rather do? ``lines`` is where they differ."""

    id: str
    number: int
    progress: str = Field(description="How many more there may be, in words.")
    plans: list[PlanCard]
    facts: list[Line]
    lines: list[Line]
    shared: list[Line] = Field(description="What is the same in all of them.")


class Alternative(BaseModel):
    """The easiest plan with at most so many steps."""

    steps: int
    plan: PlanCard


class Result(BaseModel):
    """The plan, how sure we are, and what is proven."""

    plan: PlanCard
    confidence: float | None
    more: bool = Field(description="Whether a further question could make us surer.")
    confidence_words: str
    certificate_words: str
    verdict: str
    alternatives: list[Alternative]
    made_at: float


class Loosening(BaseModel):
    """What lifting some limits would open."""

    limits: list[str]
    words: str
    plan: PlanCard | None


class NoPlan(BaseModel):
    """Why there is no plan, and what would open one."""

    verdict: str
    words: str
    loosenings: list[Loosening]


class Progress(BaseModel):
    """How far the conversation is; ``left`` is an estimate, not a promise."""

    answered: int
    left: int | None
    most: int


class ConversationView(BaseModel):
    """Where a conversation is; ``waiting`` at a ``place`` while it is computed."""

    stage: Literal["question", "plan", "no_plan", "favourable", "waiting"] = Field(
        examples=["question"], description="What there is to show."
    )
    version: int = Field(description="Grows with every change.")
    shown: str = Field(
        examples=["0.3f2a9c1e5b7d4a60"], description="Every change names what it is about by this."
    )
    place: int = Field(0, description="Where in the queue, while waiting.")
    score: float = Field(examples=[0.03], description="Points of 100, as a share.")
    bar: float = Field(examples=[0.5], description="The score must be above this.")
    expires_at: float = Field(description="When the link ends, in seconds since 1970.")
    problem_fingerprint: str = Field(description="Which version of the problem.")
    model_fingerprint: str = Field(description="Which version of the model.")
    progress: Progress
    limits: list[Limit] = Field(description="What this person cannot do.")
    notices: list[str] = Field(description="What to tell them, in words.")
    question: Question | None = Field(
        None, examples=[QUESTION], description="At the stage of that name."
    )
    result: Result | None = Field(None, description="At the stage 'plan'.")
    no_plan: NoPlan | None = Field(None, description="At the stage of that name.")


class Created(BaseModel):
    """A new conversation; the link is shown this once."""

    id: str = Field(examples=["9f2c41d07be85a36"], description="Its number on the lender's side.")
    token: str = Field(
        examples=["pB3xT1…"], description="The secret of the link: give it to nobody else."
    )
    link: str = Field(examples=["https://…/c/pB3xT1…"], description="What the person opens.")
    expires_at: float = Field(description="When it ends unless used, in seconds since 1970.")
    stage: str = Field(examples=["new"])


class Summary(BaseModel):
    """One conversation in the lender's list: no data of the person, no link."""

    id: str
    reference: str | None
    stage: str
    created_at: float
    updated_at: float
    expires_at: float
    questions: int
    minutes: float
    success: bool | None
    steps: int | None = Field(description="Steps of the plan that are left.")
    done: int = Field(0, description="Steps done.")
    effort: float | None


class Page(BaseModel):
    """A part of the lender's list."""

    total: int
    conversations: list[Summary]


class Group(BaseModel):
    """How the people of one protected group fared; numbers of small groups are withheld."""

    feature: str
    group: str
    people: int
    validity: float | None
    effort: float | None
    questions: float | None


class Fairness(BaseModel):
    """Outcomes by protected group."""

    smallest_group: int
    groups: list[Group]


class KeyEntry(BaseModel):
    """A key's entry; never the key."""

    id: str
    name: str
    roles: list[str]
    owner: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None


class CreatedKey(KeyEntry):
    """A new key, shown this once."""

    key: str


class FeatureFacts(BaseModel):
    """A feature a record must hold."""

    name: str
    label: str
    kind: str
    unit: str
    lower: float | None
    upper: float | None
    categories: list[str]
    changeable: bool
    protected: bool


class ProblemFacts(BaseModel):
    """What the decision looks at."""

    name: str
    problem_fingerprint: str
    model_fingerprint: str
    bar: float
    features: list[FeatureFacts]


# Errors


MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "The conversation has moved on",
    408: "The request took too long",
    410: "This link has ended",
    413: "Too large",
    415: "Not a kind of content we read",
    422: "Something in the request is not right",
    429: "Too many requests",
    500: "Something went wrong on our side",
    503: "Not available right now",
}


class FieldError(BaseModel):
    """What is wrong with one part of a request."""

    field: str = Field(examples=["record.monthly_income"])
    message: str = Field(examples=["'monthly_income' must be at least 0 (got -5)"])


class ProblemDetails(BaseModel):
    """The shape of every error."""

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no conversation behind this link."])
    request_id: str = Field("", examples=["3f2a9c1e5b7d4a60"])
    errors: list[FieldError] = []
    present: dict[str, Any] | None = Field(
        None, description="What is current, where something else was shown (409)."
    )


UNKNOWN = "Something went wrong on our side; read again what was stored before you go on."
"""Never that nothing was changed: that is not known once something unforeseen happened."""


@dataclass
class ServiceError(Exception):
    """An answer other than success, with what a person or a program can do about it."""

    status: int
    detail: str
    headers: Mapping[str, str] | None = None
    errors: Sequence[tuple[str, str]] = ()
    present: Mapping[str, Any] | None = None
    case: str = ""
    """The number of the conversation it is about, for the page to name."""

    def details(self, request_id: str) -> dict[str, Any]:
        """The error as plain data for JSON."""
        return ProblemDetails(
            title=TITLES.get(self.status, "Something is not right"),
            status=self.status,
            detail=self.detail,
            request_id=request_id,
            errors=[FieldError(field=field, message=message) for field, message in self.errors],
            present=None if self.present is None else dict(self.present),
        ).model_dump(exclude_none=True)


def not_found(detail: str = "There is no conversation behind this link.") -> ServiceError:
    """The same words for a wrong link and a deleted one: neither is confirmed."""
    return ServiceError(404, detail)


def ended(case: str, detail: str) -> ServiceError:
    """A conversation that cannot be opened any more."""
    return ServiceError(410, detail, case=case)


def retry_later(status: int, detail: str, seconds: float) -> ServiceError:
    """An error that says when to try again."""
    return ServiceError(status, detail, {"Retry-After": str(max(1, round(seconds)))})


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for the OpenAPI description."""
    always = {400, 404, 405, 413, 422, 429, 500, 503}
    return {
        status: {
            "description": TITLES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted(always | set(statuses))
    }
