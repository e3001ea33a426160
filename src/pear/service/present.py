"""How is what the search found put into words for a person?

Nothing here claims more than: by what you told us, among the steps considered, for this
version of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pear.problem import Problem
from pear.service.catalogue import Catalogue
from pear.service.store import Conversation


class Presenter:
    """Puts conversations into the words of one language."""

    def __init__(self, problem: Problem, texts: Catalogue, most_questions: int) -> None:
        self.problem, self.texts, self.most = problem, texts, most_questions

    def conversation(self, conversation: Conversation) -> dict[str, Any]:
        """A worked-out conversation as the API gives it."""
        view = conversation.view
        assert view is not None
        return {
            "stage": view["stage"],
            "version": conversation.version,
            "score": view["score"],
            "bar": view["bar"],
            "expires_at": conversation.expires_at,
            "problem_fingerprint": conversation.problem_fingerprint,
            "model_fingerprint": conversation.model_fingerprint,
            "progress": {
                "answered": conversation.questions,
                "left": view.get("left"),
                "most": self.most,
            },
            "limits": [{**limit, "words": self.limit(limit)} for limit in conversation.limits],
            "notices": [self.texts(f"notice.{code}") for code in view.get("notices", ())],
            "question": self._question(view),
            "result": self._result(view),
            "no_plan": self._no_plan(view, conversation.limits),
        }

    def limit(self, limit: Mapping[str, Any]) -> str:
        """A limit in words: "Leave savings as it is"."""
        return self._about("limit", limit)

    def refusal(self, limit: Mapping[str, Any]) -> str:
        """What a person says who sets this limit: "I can't change savings at all"."""
        return self._about("refusal", limit)

    def _about(self, section: str, limit: Mapping[str, Any]) -> str:
        if limit["kind"] == "action":
            return self.texts(f"{section}.action", action=limit["action"].replace("_", " "))
        feature = self.problem.space[limit["feature"]]
        if limit["kind"] == "feature":
            return self.texts(f"{section}.feature", feature=feature.words)
        value = feature.show(feature.code(limit["value"]))
        kind = limit["kind"] + ("_" + limit["direction"] if limit["kind"] == "beyond" else "")
        return self.texts(f"{section}.{kind}", feature=feature.words, value=value)

    def _question(self, view: Mapping[str, Any]) -> dict[str, Any] | None:
        question = view.get("question")
        if view["stage"] != "question" or question is None:
            return None
        return {"number": question["number"], "plans": [self.card(p) for p in question["plans"]]}

    def card(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """A plan with the reason of each step in words."""
        steps = [{**step, "reason": self.reason(step)} for step in plan["steps"]]
        return {**plan, "steps": steps, "difference": self.difference(plan.get("apart"))}

    def difference(self, apart: Mapping[str, Any] | None) -> str:
        """What sets a plan apart from the others of its question."""
        if not apart:
            return ""
        parts = [self._other_values(item) for item in apart["values"]]
        if apart["only"]:
            parts.append(self.texts("difference.only", features=self._names(apart["only"])))
        if apart["spared"]:
            key = "difference.spared" if len(apart["spared"]) == 1 else "difference.spared_many"
            parts.append(self.texts(key, features=self._names(apart["spared"])))
        if not parts:
            parts.append(self.texts("difference.order" if apart["order"] else "difference.part"))
        return " ".join(parts)

    def _names(self, names: Sequence[str]) -> str:
        words = [self.problem.space[name].words for name in names]
        head = ", ".join(words[:-1])
        return f"{head} {self.texts('difference.and')} {words[-1]}" if head else words[-1]

    def _other_values(self, item: Mapping[str, Any]) -> str:
        feature = self.problem.space[item["feature"]]
        others = [
            self.texts(
                "difference.other", value=feature.show(feature.code(value)), letter="ABCD"[place]
            )
            for place, value in item["others"]
        ]
        return self.texts(
            "difference.value",
            feature=feature.words[:1].upper() + feature.words[1:],
            value=feature.show(feature.code(item["value"])),
            others=", ".join(others),
        )

    def reason(self, step: Mapping[str, Any]) -> str:
        """Why a step is in the plan, from what the search measured."""
        facts = step.get("why") or {}
        parts = [step["reason"]] if step.get("reason") else []
        bar = self.problem.goal.bar()
        gain = points(step["score_after"], bar) - points(step["score_before"], bar)
        if facts.get("opens"):
            parts.append(self.texts("reason.opens", step=facts["opens"]))
        if facts.get("without") is not None and not facts.get("opens"):
            parts.append(self.texts("reason.without", points=points(facts["without"])))
        if gain > 0:
            parts.append(self.texts.count("reason.gain", gain))
        if facts.get("eases"):
            parts.append(self.texts("reason.eases", step=facts["eases"]))
        return " ".join(parts)

    def _result(self, view: Mapping[str, Any]) -> dict[str, Any] | None:
        result = view.get("result")
        if result is None:
            return None
        return {
            **result,
            "plan": self.card(result["plan"]),
            "confidence_words": self.confidence(result.get("confidence"), more=result["more"]),
            "certificate_words": self.certificate(result["verdict"]),
            "alternatives": [
                {**other, "plan": self.card(other["plan"])} for other in result["alternatives"]
            ],
        }

    def confidence(self, probability: float | None, *, more: bool = False) -> str:
        """How sure we are, in words and a rounded share."""
        if probability is None:
            return ""
        level = "high" if probability >= 0.9 else "fair" if probability >= 0.6 else "low"
        words = self.texts(f"confidence.{level}", tenths=min(9, round(10 * probability)))
        return f"{words} {self.texts('confidence.more')}" if more else words

    def certificate(self, verdict: str) -> str:
        """What is proven about a plan."""
        return self.texts(f"certificate.{verdict}")

    def _no_plan(
        self, view: Mapping[str, Any], limits: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        found = view.get("no_plan")
        if found is None:
            return None
        by_id = {limit["id"]: limit for limit in limits}
        loosenings = [
            {
                **item,
                "words": f" {self.texts('no_plan.and')} ".join(
                    self.limit(by_id[number]) for number in item["limits"] if number in by_id
                ),
                "plan": self.card(item["plan"]) if item.get("plan") else None,
            }
            for item in found["loosenings"]
        ]
        key = "proven" if found["verdict"] == "infeasible" else "unknown"
        return {
            **found,
            "words": self.texts(f"no_plan.{key}"),
            "loosenings": loosenings,
        }


def points(score: float, bar: float | None = None) -> int:
    """A score as whole points of 100; one that passes the bar is never shown as the bar.

    >>> points(0.499, 0.5), points(0.501, 0.5), points(0.518, 0.5)
    (49, 51, 51)
    """
    whole = int(100 * score + 1e-9)
    passes_unseen = bar is not None and score > bar and whole <= int(100 * bar + 1e-9)
    return whole + 1 if passes_unseen else whole
