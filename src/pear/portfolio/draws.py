"""Which few weights stand for everybody of a prior, and how does a table of plans name them?

A plan under the prior is the one of least mean cost over these draws. They are spread over
the kinds of people in proportion to their shares, and centred within each kind: as few plain
random draws would say more about chance than about the prior.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.preferences import GaussianMixturePrior

Floats = NDArray[np.float64]

SAMPLES = 32
"""Draws by default; more of them change no plan to speak of, and take longer."""

SEED = 0


def prior_draws(prior: GaussianMixturePrior, n: int, seed: int = SEED) -> Floats:
    """n weights ``(n, p)`` that stand for a prior; the same ones for the same seed.

    >>> prior = GaussianMixturePrior(
    ...     [[0.0], [10.0]], [[1.0], [1.0]], component_weights=[3, 1], background_weight=0
    ... )
    >>> draws = prior_draws(prior, 8)
    >>> (draws > 5).sum(), draws.mean().round(6)
    (np.int64(2), np.float64(2.5))
    """
    if n < 1:
        raise InvalidSetting(f"'samples' must be at least 1 (got {n!r})")
    if n == 1:
        return prior.mean()[None]
    edges = np.cumsum(prior.shares)
    places = (np.arange(n) + 0.5) / n * edges[-1]
    kinds = np.minimum(np.searchsorted(edges, places, side="right"), prior.n_components - 1)
    standard = np.random.default_rng(seed).standard_normal((n, prior.n_weights))
    for kind in np.unique(kinds):
        own = standard[kinds == kind]
        spread = np.sqrt(len(own) / max(1, len(own) - 1))
        standard[kinds == kind] = (own - own.mean(axis=0)) * spread
    # Rounded, so that last digits of another machine's linear algebra make no other draws.
    return np.asarray(np.round(prior.centres[kinds] + prior.coloured(standard, kinds), 6))


def stated(draws: Floats, seed: int = SEED) -> str:
    """What a table of plans says of draws of the prior, in place of all their numbers.

    >>> stated(np.zeros((4, 2)))
    '{"prior_draws":4,"seed":0,"digest":"f5a5fd42d16a2030"}'
    """
    digest = hashlib.sha256((np.asarray(draws) + 0.0).tobytes()).hexdigest()[:16]
    return as_json({"prior_draws": len(draws), "seed": seed, "digest": digest})


def as_json(content: Any) -> str:
    """Plain data as compact JSON."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def weights_from(text: str, n_weights: int, prior: GaussianMixturePrior | None) -> Floats:
    """Weights ``(s, p)`` that a table of plans states: numbers, or draws of the prior."""
    try:
        content = json.loads(text)
        if isinstance(content, dict):
            n, seed = int(content["prior_draws"]), int(content["seed"])
        else:
            weights = np.atleast_2d(np.array(content, float))
            if weights.ndim != 2 or weights.shape[1] != n_weights:
                raise ValueError(f"{n_weights} numbers are needed")
            return weights
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidData(f"these are no weights: {text[:80]!r} ({error})") from None
    if prior is None:
        raise InvalidSetting("the plans were made under a prior; give it, as 'pear plan' had it")
    draws = prior_draws(prior, n, seed)
    if json.loads(stated(draws, seed)) != content:
        raise FingerprintMismatch(
            "the plans were made under another prior; give the one they were made under "
            "with --prior"
        )
    return draws
