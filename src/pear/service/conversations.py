"""What happens between a person's click and the answer they get?

Pages and API both come here. A change is searched first and stored after, in one
transaction; only then is it acknowledged. So an answer that was acknowledged is on disk,
and one that was not has changed nothing.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from pear.errors import ConversationError, FingerprintMismatch, InvalidInput
from pear.problem import Problem
from pear.service.errors import ServiceError, not_found
from pear.service.limits import check_limit
from pear.service.records import check_record, groups_of
from pear.service.searchers import Searchers
from pear.service.security import TOKEN_LENGTH, new_token
from pear.service.settings import Settings
from pear.service.store import Change, Conflict, Conversation, Request, Store

Choice = int | str


class Conversations:
    """All conversations of one problem under one model."""

    def __init__(
        self, store: Store, searchers: Searchers, problem: Problem, settings: Settings
    ) -> None:
        self.store, self.searchers = store, searchers
        self.problem, self.settings = problem, settings

    @property
    def model_fingerprint(self) -> str:
        return str(self.searchers.facts["model_fingerprint"])

    async def create(
        self,
        record: Mapping[str, Any],
        *,
        reference: str | None = None,
        days: int | None = None,
        key_id: str | None = None,
    ) -> tuple[str, Conversation]:
        """A new conversation and the token of its link, which is not kept."""
        clean, wrong = check_record(self.problem, record)
        if wrong:
            raise ServiceError(
                422,
                "The data do not fit the problem.",
                errors=[(f"record.{n}", m) for n, m in wrong],
            )
        decision = await self.searchers.run("", "decision", clean)
        token = new_token()
        columns = {
            "stage": "favourable" if decision["favourable"] else "new",
            "expires_at": time.time() + 86400 * (days or self.settings.expiry_days),
            "language": self.settings.language,
            "problem_fingerprint": self.problem.fingerprint,
            "model_fingerprint": self.model_fingerprint,
            "seed": secrets.randbelow(2**31),
            "record": clean,
            "groups": groups_of(self.problem, clean),
            "outcome": {"score": decision["score"], "questions": 0},
            "reference": reference,
            "key_id": key_id,
        }
        return token, await run_in_threadpool(self.store.create, token, columns)

    async def open(self, token: str) -> Conversation:
        """The conversation behind a link; wrong and ended links say so."""
        if len(token) != TOKEN_LENGTH:
            raise not_found()
        conversation = await run_in_threadpool(self.store.by_token, token)
        if conversation is None:
            raise not_found()
        if conversation.expired:
            raise ServiceError(
                410,
                "This link has ended. Ask the lender for a new one; nothing is lost until then.",
            )
        return conversation

    async def current(self, token: str) -> Conversation:
        """The conversation with its question or plan worked out, for today's model."""
        return await self.refresh(await self.open(token))

    async def refresh(self, conversation: Conversation) -> Conversation:
        """The same conversation, worked out, and checked again if the model changed."""
        if self._is_stale(conversation):
            try:
                return await self._do(conversation, "recheck", {}, None)
            except (InvalidInput, FingerprintMismatch):
                raise ServiceError(
                    410,
                    "The lender changed what the decision looks at, so this conversation cannot go "
                    "on. Ask the lender for a new link.",
                ) from None
            except Conflict:
                return await self._again(conversation)
        if conversation.view is None:
            columns = await self.searchers.run(conversation.id, "look", _snapshot(conversation))
            await run_in_threadpool(self.store.keep_view, conversation, columns)
            return await self._again(conversation)
        return conversation

    async def act(
        self,
        token: str,
        kind: str,
        content: Mapping[str, Any],
        *,
        key: str | None = None,
    ) -> Conversation:
        """One thing a person does; with a key it is done once, however often it is sent."""
        conversation = await self.open(token)
        request = None
        if key is not None:
            request = Request(key, json.dumps([kind, content], sort_keys=True, default=str))
            if await self._was_done(conversation, request):
                return await self.refresh(conversation)
        conversation = await self.refresh(conversation)
        content = self._checked(conversation, kind, content)
        try:
            return await self._do(conversation, kind, content, request)
        except Conflict:
            if request is not None and await self._was_done(conversation, request):
                return await self._again(conversation)
            raise

    async def delete(self, conversation: Conversation) -> None:
        """Forget a conversation and everything in it, at once."""
        await run_in_threadpool(self.store.delete, conversation.id)

    async def history(self, conversation: Conversation) -> list[dict[str, Any]]:
        """The questions answered so far that still count, oldest first, with what was shown."""
        answers: list[dict[str, Any]] = []
        for event in await run_in_threadpool(self.store.history, conversation.id):
            if event.kind == "answer":
                answers.append(dict(event.content))
            elif event.kind == "undo" and answers:
                answers = answers[: int(event.content["kept"])]
            elif event.kind in ("record", "done") and event.content.get("fresh"):
                answers = []
        return answers

    async def _was_done(self, conversation: Conversation, request: Request) -> bool:
        return await run_in_threadpool(self.store.replayed, conversation.id, request)

    def _is_stale(self, conversation: Conversation) -> bool:
        return (
            conversation.model_fingerprint != self.model_fingerprint
            or conversation.problem_fingerprint != self.problem.fingerprint
        )

    async def _do(
        self,
        conversation: Conversation,
        kind: str,
        content: Mapping[str, Any],
        request: Request | None,
    ) -> Conversation:
        result = await self.searchers.run(
            conversation.id, "act", _snapshot(conversation), kind, content
        )
        change = Change(kind, result["event"], result["columns"])
        await run_in_threadpool(self.store.change, conversation, change, request)
        return await self._again(conversation)

    async def _again(self, conversation: Conversation) -> Conversation:
        found = await run_in_threadpool(self.store.by_id, conversation.id)
        if found is None:
            raise not_found()
        return found

    def _checked(
        self, conversation: Conversation, kind: str, content: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The content of an action, once it fits what the person sees."""
        view = conversation.view or {}
        if kind == "answer":
            _check_answer(view, content)
        elif kind == "limit":
            return check_limit(self.problem, content)
        elif kind == "lift":
            if content["id"] not in [limit["id"] for limit in conversation.limits]:
                raise not_found("There is no such limit; perhaps it was removed already.")
        elif kind == "undo":
            if conversation.questions < 1:
                raise ConversationError("there is no answer to take back")
        elif kind == "done":
            steps = ((view.get("result") or {}).get("plan") or {}).get("steps", ())
            if not 1 <= content["steps"] <= len(steps):
                raise ConversationError(
                    f"the plan has {len(steps)} steps; 'steps' must be between 1 and that number "
                    f"(got {content['steps']})"
                )
        elif kind == "record":
            clean, wrong = check_record(self.problem, content["record"])
            if wrong:
                raise ServiceError(
                    422,
                    "The data do not fit the problem.",
                    errors=[(f"record.{name}", message) for name, message in wrong],
                )
            return {"record": clean}
        return content


def _check_answer(view: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    question = view.get("question")
    if view.get("stage") != "question" or question is None:
        raise Conflict(
            "no question is open any more; nothing was changed: read the conversation again"
        )
    if content["question"] != question["number"]:
        raise Conflict(
            f"question {content['question']} is not the open one, which is {question['number']}; "
            "nothing was changed: read the conversation again"
        )
    choice: Choice = content["choice"]
    if choice in ("same", "none"):
        return
    if isinstance(choice, str) or not 0 <= choice < len(question["plans"]):
        raise ServiceError(
            422,
            f"'choice' must be 'same', 'none' or the number of a plan from 0 to "
            f"{len(question['plans']) - 1} (got {choice!r})",
            errors=[("choice", "no such plan in this question")],
        )


def _snapshot(conversation: Conversation) -> dict[str, Any]:
    """What a search needs to know of a conversation; no token, no reference."""
    return {
        "id": conversation.id,
        "version": conversation.version,
        "stage": conversation.stage,
        "seed": conversation.seed,
        "record": dict(conversation.record),
        "limits": [dict(limit) for limit in conversation.limits],
        "questions": conversation.questions,
        "session": conversation.session,
        "view": conversation.view,
        "outcome": conversation.outcome,
        "problem_fingerprint": conversation.problem_fingerprint,
        "model_fingerprint": conversation.model_fingerprint,
    }
