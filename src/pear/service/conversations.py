"""What happens between a person's click and the answer they get?

Pages and API both come here. What a person says is checked against what they were shown and stored
at once, in one transaction: an answer that was acknowledged is on disk. The next question or plan
follows from it, is computed in a search process, one search for a conversation at a time, and
kept beside it. Who must wait is told their place, and loses nothing by going away.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from pear.elicitation import Question, Standing
from pear.elicitation.says import (
    Accepted,
    Allowed,
    Answered,
    Corrected,
    Done,
    Excluded,
    Position,
    Resumed,
    Said,
    Undone,
    carried,
    check_record,
    fold,
    read_choice,
    read_said,
    steps_done,
)
from pear.errors import ConversationError, PearError, WorkerFailed
from pear.problem import NO_LIMITS, Problem
from pear.problem.features import Record, Value
from pear.problem.limits import Limit
from pear.service.engine import Case, News, Notice, Searchers, SearchTooLong, Seen, changes
from pear.service.lender.fairness import groups_of
from pear.service.schemas import ServiceError, ended, not_found
from pear.service.settings import Settings
from pear.service.store.database import (
    Conflict,
    Conversation,
    Outcome,
    ReplayMismatch,
    Request,
    Store,
    StoredEvent,
    hashed,
    new_token,
    outcome_of,
)

TOKEN_LENGTH = 43
"""Characters of a conversation's token: 32 random bytes."""


@dataclass(frozen=True)
class View:
    """A conversation as a person sees it; without a standing while they wait at a ``place``."""

    conversation: Conversation
    standing: Standing | None
    notices: tuple[Notice, ...] = ()
    place: int = 0

    @property
    def told(self) -> tuple[Notice, ...]:
        """Everything a person is told, including that the lender must confirm something."""
        asked = (Notice("asked"),) if self.conversation.asked else ()
        return (*self.notices, *asked)

    @property
    def shown(self) -> str:
        """What forms and requests must name: the version, and the question where there is one."""
        question = self.standing.question if self.standing else None
        return f"{self.conversation.version}.{question.id if question else ''}"


class Stale(Conflict):
    """What the person saw is out of date; nothing was changed. ``view`` is the current one."""

    def __init__(self, view: View) -> None:
        super().__init__(
            "this was shown before the conversation moved on, perhaps in another window; "
            "nothing was changed: read what stands now and say it again"
        )
        self.view = view


class ServedElsewhere(PearError):
    """A newer version of the model serves this conversation; nothing was changed."""


Says = Callable[[View, Position], Said]
"""Makes what a person says of what they see and everything said before."""


class Conversations:
    """All conversations of one problem under one model."""

    def __init__(
        self, store: Store, searchers: Searchers, problem: Problem, settings: Settings
    ) -> None:
        self.store, self.searchers = store, searchers
        self.problem, self.settings = problem, settings
        self._database = store.database.run
        self._at_work: dict[str, asyncio.Task[View | None]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def serves(self) -> tuple[str, str]:
        """Fingerprints of the problem and the model."""
        return self.problem.fingerprint, self.searchers.facts["model_fingerprint"]

    async def create(
        self,
        record: Record,
        *,
        reference: str | None = None,
        days: int | None = None,
        key_id: str | None = None,
        token: str | None = None,
    ) -> tuple[str, Conversation]:
        """A new conversation and the token of its link, which is not kept.

        With a ``token`` that a repeated request leads to again, it is made once.
        """
        clean = self.record(record)
        request = hashed(json.dumps([clean, reference, days], sort_keys=True))
        made = await self._made(token, request) if token else None
        if token and made:
            return token, made
        score = await self.searchers.run("", "score", clean)
        favourable = score > self.problem.goal.required()
        problem, model = self.serves
        token = token or new_token()
        try:
            made = await self._database(
                self.store.create,
                token,
                stage="favourable" if favourable else "new",
                expires_at=time.time() + 86400 * (days or self.settings.expiry_days),
                problem_fingerprint=problem,
                model_fingerprint=model,
                seed=secrets.randbelow(2**31),
                record=clean,
                groups=groups_of(self.problem, clean),
                outcome=Outcome(score),
                reference=reference,
                key_id=key_id,
                request_hash=request,
            )
        except Conflict:
            # The same request, sent twice at once.
            made = await self._made(token, request)
            if made is None:
                raise
        return token, made

    async def _made(self, token: str, request: str) -> Conversation | None:
        """The conversation that an earlier request made, if it was the same request."""
        made = await self._database(self.store.by_token, token)
        if made is not None and made.request_hash != request:
            raise ReplayMismatch
        return made

    def record(self, record: Record) -> dict[str, Value | None]:
        """A record as it is stored; one that does not fit the problem is refused by field."""
        clean, wrong = check_record(self.problem, record)
        if wrong:
            raise ServiceError(
                422,
                "The data do not fit the problem.",
                errors=[(f"record.{name}", message) for name, message in wrong],
            )
        return clean

    async def open(self, token: str) -> Conversation:
        """The conversation behind a link; wrong and ended links say so."""
        conversation = None
        if len(token) == TOKEN_LENGTH and token.isascii() and token.isprintable():
            conversation = await self._database(self.store.by_token, token)
        if conversation is None:
            raise not_found()
        if conversation.expired:
            raise ended(
                conversation.id,
                "This link has ended. Ask the lender for a new one; nothing is lost until then.",
            )
        return conversation

    async def position(self, conversation: Conversation) -> Position:
        """Where everything said leads; a conversation that no longer fits cannot go on."""
        return self._position(await self._carried_to_new_model(conversation))

    async def look(
        self, conversation: Conversation, address: str = "", *, used: bool = True
    ) -> View:
        """What a person sees; where it takes long to compute, their place in the queue.

        The link of a plan works on each time it is ``used``.
        """
        view = await self._seen(conversation, address)
        return await self._renewed(view) if used else view

    async def _renewed(self, view: View) -> View:
        until = time.time() + 86400 * self.settings.plan_days
        conversation = view.conversation
        if conversation.stage != "plan" or conversation.expires_at > until - 86400:
            return view
        await self._database(self.store.set_end, conversation.id, until)
        return replace(view, conversation=replace(conversation, expires_at=until))

    async def new_link(self, conversation: Conversation) -> str:
        """A new token for a conversation; the old link ends at once, and nothing else does."""
        planned = conversation.stage == "plan"
        days = self.settings.plan_days if planned else self.settings.expiry_days
        token = new_token()
        until = max(conversation.expires_at, time.time() + 86400 * days)
        await self._database(self.store.set_end, conversation.id, until, token)
        return token

    async def _seen(self, conversation: Conversation, address: str) -> View:
        conversation = await self._carried_to_new_model(conversation)
        if conversation.worked_out:
            return View(conversation, conversation.standing, conversation.notices)
        task = self._at_work.get(conversation.id)
        if task is None:
            task = asyncio.create_task(self._work_out(conversation, address))
            self._at_work[conversation.id] = task
            task.add_done_callback(lambda ended: self._ended(conversation.id, ended))
        done, _ = await asyncio.wait({task}, timeout=self.settings.patience_seconds)
        if not done:
            return View(conversation, None, place=self.searchers.place(conversation.id) or 1)
        view = task.result()
        if view is None or view.conversation.version < conversation.version:
            return await self._seen(await self._again(conversation), address)
        return view

    def _ended(self, number: str, task: asyncio.Task[View | None]) -> None:
        self._at_work.pop(number, None)
        if not task.cancelled():
            task.exception()  # Whoever still waits is told; if nobody does, the next look tries

    async def say(
        self,
        conversation: Conversation,
        what: Says,
        *,
        shown: str,
        request: Request | None = None,
        address: str = "",
        follow: bool = True,
    ) -> View:
        """One thing a person says about what they were shown, and what they see after it.

        With a request's key it is said once, however often it is sent. What was said of something
        that no longer stands changes nothing, and raises :class:`Stale`. Once it is stored nothing
        is raised: what cannot be computed now is so when it is looked at next. Who does not
        ``follow`` sees only that it is stored.
        """
        turn = self._turns.setdefault(conversation.id, asyncio.Lock())
        waited = turn.locked()
        async with turn:
            if waited:
                conversation = await self._again(conversation)
            if await self._already_stored(conversation, request):
                return await self.look(conversation, address)
            conversation = await self._carried_to_new_model(conversation)
            if shown.partition(".")[0] != str(conversation.version):
                raise Stale(await self.look(conversation, address))
            try:
                view = await self.look(conversation, address)
            except (SearchTooLong, WorkerFailed):
                # What led here can still be taken back.
                view = View(conversation, None)
            if view.standing is not None and shown != view.shown:
                raise Stale(view)
            try:
                stored = await self._store(view, what, request)
            except Conflict:
                # Another process was faster, perhaps with this very request.
                conversation = await self._again(conversation)
                if await self._already_stored(conversation, request):
                    return await self.look(conversation, address)
                raise Stale(await self.look(conversation, address)) from None
        if follow:
            with suppress(PearError):
                return await self.look(stored, address)
        return View(stored, None)

    async def _already_stored(self, conversation: Conversation, request: Request | None) -> bool:
        """Whether this very request was done before."""
        replayed = self.store.replayed
        return request is not None and await self._database(replayed, conversation.id, request)

    async def _store(self, view: View, what: Says, request: Request | None) -> Conversation:
        conversation = view.conversation
        position = self._position(conversation)
        said = what(view, position)
        said.check(self.problem, position)
        before = self._said(conversation)
        after = said.added_to(before)
        stored = {
            id(old): dict(event) for old, event in zip(before, conversation.said, strict=True)
        }
        asked: Record = {}
        if isinstance(said, Corrected) and self.settings.confirm_corrections:
            asked, said = self._to_confirm(position, said)
            after = said.added_to(before)
        event = {**said.to_dict(), "asked": asked} if asked else said.to_dict()
        question = view.standing.question if view.standing else None
        if isinstance(said, Answered) and question is not None:
            event["shown"] = question.to_dict()
        number = {"event": conversation.version + 1}
        return await self._database(
            self.store.change,
            conversation,
            event,
            request,
            said=tuple(stored.get(id(one)) or {**one.to_dict(), **number} for one in after),
            questions=sum(isinstance(one, Answered) for one in after),
            news=self._news(view, said),
            asked={**conversation.asked, **asked},
        )

    def _to_confirm(self, position: Position, said: Corrected) -> tuple[Record, Corrected]:
        """What of a correction is for the lender to confirm, and the rest of it."""
        [present] = self.problem.space.decode(position.start)
        asked = {
            feature.name: said.record[feature.name]
            for feature in self.problem.space.features
            if (feature.immutable or feature.protected)
            and said.record[feature.name] != present[feature.name]
        }
        return asked, replace(said, record={**said.record, **{n: present[n] for n in asked}})

    async def decide(self, conversation: Conversation, *, confirm: bool, key_id: str) -> None:
        """What the lender says of a correction that was asked for."""
        conversation = await self._carried_to_new_model(conversation)
        stored = conversation.said
        news = replace(conversation.news, decided="confirmed" if confirm else "declined")
        if confirm:
            position = self._position(conversation)
            [present] = self.problem.space.decode(position.start)
            planned = position.accepted is not None or conversation.stage == "plan"
            said = Corrected({**present, **conversation.asked}, planned=planned)
            said.check(self.problem, position)
            number = {"event": conversation.version + 1}
            stored = (*conversation.said, {**said.to_dict(), **number})
            event = {**said.to_dict(), "key_id": key_id}
        else:
            event = {"kind": "declined", "asked": dict(conversation.asked), "key_id": key_id}
        await self._database(
            self.store.change, conversation, event, said=stored, news=news, asked={}
        )

    def _news(self, view: View, said: Said) -> News:
        """What happened since the person was last shown where they stand."""
        if view.standing is None:
            return view.conversation.news
        result = view.standing.result
        if isinstance(said, Done) and result is not None:
            return News(rest=changes(result.plan.steps[len(said.steps) :]))
        return News()

    async def answers(self, conversation: Conversation) -> list[tuple[Question, int | str]]:
        """Questions and answers that still count, oldest first: a plan's place, same or none."""
        history = await self._database(self.store.history, conversation.id)
        content = {event.number: event.content for event in history}
        answered = [event for event in conversation.said if event["kind"] == "answer"]
        found = [content[event["event"]] for event in answered if event.get("event") in content]
        return [(Question.from_dict(one["shown"]), _chosen_in(one["answer"])) for one in found]

    async def everything(self, conversation: Conversation) -> dict[str, Any]:
        """All that is stored about one person."""
        history = await self._database(self.store.history, conversation.id)
        given = await self._database(self.store.plans, conversation.id)
        return {
            "conversation": conversation.to_dict(),
            "events": [vars(event) for event in history],
            "plans": [vars(plan) for plan in given],
        }

    async def _again(self, conversation: Conversation) -> Conversation:
        found = await self._database(self.store.by_id, conversation.id)
        if found is None:
            raise not_found()
        return found

    def _position(self, conversation: Conversation) -> Position:
        first = Position.first(self.problem.state(self._fitting(conversation)), NO_LIMITS)
        return fold(self.problem, first, self._said(conversation))

    def _said(self, conversation: Conversation) -> tuple[Said, ...]:
        """Everything said that was not taken back, for a conversation about today's problem."""
        return tuple(read_said(event, self.problem) for event in conversation.said)

    def _fitting(self, conversation: Conversation) -> Record:
        """The first record, as far as the problem looks at it."""
        names = self.problem.space.names
        return {name: value for name, value in conversation.record.items() if name in names}

    async def _work_out(self, conversation: Conversation, address: str) -> View | None:
        case = Case(
            conversation.id,
            conversation.seed,
            self._fitting(conversation),
            self._said(conversation),
            conversation.news,
        )
        seen: Seen = await self.searchers.run(conversation.id, "look", case, address=address)
        standing = seen.standing
        plan = standing.result.plan if standing.result and standing.stage == "plan" else None
        try:
            conversation = await self._database(
                self.store.keep,
                conversation,
                plan,
                self.settings.honour_days,
                stage=standing.stage,
                standing=standing,
                notices=seen.notices,
                outcome=outcome_of(standing),
                news=News(),
            )
        except Conflict:
            return None
        return View(conversation, standing, conversation.notices)

    async def _carried_to_new_model(self, conversation: Conversation) -> Conversation:
        """The conversation under today's problem and model, with as much of it as still stands."""
        stored = conversation.problem_fingerprint, conversation.model_fingerprint
        if stored == self.serves:
            return conversation
        if await self._database(self.store.latest_served) != self.serves:
            raise ServedElsewhere(
                "another version of the model serves this conversation by now; try again in a "
                "moment; nothing was changed"
            )
        record = self._fitting(conversation)
        _clean, wrong = check_record(self.problem, record)
        if wrong:
            raise ended(
                conversation.id,
                "The lender changed what the decision looks at, so this conversation cannot go "
                "on. Ask the lender for a new link.",
            )
        first = Position.first(self.problem.state(record), NO_LIMITS)
        same = stored[0] == self.problem.fingerprint
        kept, lost = carried(self.problem, first, conversation.said, same=same)
        said = tuple(e for e in conversation.said if not any(e is one for one in lost))
        problem, model = self.serves
        event = {"kind": "model", "problem": problem, "model": model, "lost": list(lost)}
        try:
            return await self._database(
                self.store.change,
                conversation,
                event,
                problem_fingerprint=problem,
                model_fingerprint=model,
                said=said,
                questions=sum(isinstance(one, Answered) for one in kept),
                news=_news_of_a_model(conversation, lost),
            )
        except Conflict:
            return await self._carried_to_new_model(await self._again(conversation))


MOST_CORRECTIONS = 20
"""Corrections in one conversation: more would be a way to ask the model about anyone."""

LOST = {
    "answer": "answers",
    "accept": "plan",
    "exclude": "limits",
    "allow": "limits",
    "limits": "limits",
    "done": "steps",
    "correct": "data",
}
"""What a person is told is lost, by the kind of event."""


def _chosen_in(answer: Mapping[str, Any]) -> int | str:
    """What a stored answer chose: a plan's place from 0, ``same`` or ``none``."""
    kinds = {"about_the_same": "same", "none_of_these": "none"}
    return kinds.get(answer["kind"]) or int(answer["plan"])


def _news_of_a_model(conversation: Conversation, lost: Sequence[StoredEvent]) -> News:
    standing = conversation.standing
    if standing is None:
        return conversation.news
    counts = Counter(LOST[event["kind"]] for event in lost if event["kind"] in LOST)
    planned = standing.result if standing.stage == "plan" else None
    plan = changes(planned.plan.steps) if planned is not None else None
    return replace(conversation.news, new_model=True, plan=plan, lost=dict(counts))


# What a person says, made of what they see


def answer(choice: Any) -> Says:
    """The answer to the open question: a plan's place from 0, ``same`` or ``none``."""

    def said(view: View, position: Position) -> Said:
        question = view.standing.question if view.standing else None
        if question is None:
            raise ConversationError("no question is open; nothing was changed")
        try:
            given = read_choice(choice, len(question.plans))
        except ConversationError as error:
            raise ServiceError(422, str(error), errors=[("choice", "no such plan")]) from None
        moves = tuple(plan.moves for plan in question.plans)
        return Answered(given, tuple(position.start.tolist()), moves)

    return said


def limit(stated: Mapping[str, Any], problem: Problem) -> Says:
    """ "I can't do this"."""
    clean = Limit.from_dict(stated).checked(problem)
    return lambda view, position: Excluded((clean,))


def lift(ids: Sequence[str]) -> Says:
    """ "I could do this after all": limits by their ids."""

    def said(view: View, position: Position) -> Said:
        lifted = tuple(limit for limit in position.limits if limit.id in ids)
        if len(lifted) != len(set(ids)):
            raise not_found("There is no such limit; perhaps it was removed already.")
        return Allowed(lifted)

    return said


def undo(kept: int | None = None) -> Says:
    """Take back the last answer, or all after so many."""

    def said(view: View, position: Position) -> Said:
        return Undone(len(position.answers) - 1 if kept is None else kept)

    return said


def undo_done(view: View, position: Position) -> Said:
    """ "Not done after all": the steps last said to be done are open again."""
    return Undone(done=True)


def accept(view: View, position: Position) -> Said:
    """ "Use the best plan so far"."""
    if view.standing is not None and view.standing.stage == "no_plan":
        raise ConversationError("there is no plan to use; nothing was changed")
    return Accepted()


def resume(view: View, position: Position) -> Said:
    """ "Ask me more"."""
    return Resumed()


def done(steps: int) -> Says:
    """ "I have done the first steps of my plan"."""

    def said(view: View, position: Position) -> Said:
        result = view.standing.result if view.standing else None
        if result is None:
            raise ConversationError("there is no plan yet whose steps could be done")
        return steps_done(result.plan, steps)

    return said


def correct(record: Record) -> Says:
    """ "My data are these"."""

    def said(view: View, position: Position) -> Said:
        before = sum(event["kind"] == "correct" for event in view.conversation.said)
        if before >= MOST_CORRECTIONS:
            raise ServiceError(
                409,
                f"Data can be corrected {MOST_CORRECTIONS} times here; ask the lender to correct "
                "them.",
            )
        planned = position.accepted is not None or view.conversation.stage == "plan"
        return Corrected(dict(record), planned=planned)

    return said
