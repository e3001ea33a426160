"""How an assignment of an option to every level is written as one or a few whole numbers.

Options take a fixed number of bits each. Codes compare as the assignments do for ties: first
by the option of the level that stands first; "no change" is the last option of a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Words = Sequence[NDArray[np.int64]]
BITS = 62
"""Bits of one word that are used."""


@dataclass(frozen=True)
class Codes:
    """For each level: the word its option stands in, the shift, and the mask.

    ``nothing`` are the words of the assignment that changes nothing.
    """

    word: tuple[int, ...]
    shift: tuple[int, ...]
    mask: tuple[int, ...]
    nothing: tuple[int, ...]

    @classmethod
    def of(cls, lasts: Sequence[int], ranks: Sequence[int]) -> Codes:
        """Codes for levels with options 0 to ``lasts[i]``; lower ranks stand first.

        >>> codes = Codes.of([3, 1], ranks=[1, 0])
        >>> codes.nothing, codes.shift
        ((7,), (0, 2))
        """
        count = len(lasts)
        width = [max(1, int(last).bit_length()) for last in lasts]
        words: list[list[int]] = [[]]
        for level in sorted(range(count), key=lambda i: ranks[i]):
            if sum(width[other] for other in words[-1]) + width[level] > BITS:
                words.append([])
            words[-1].append(level)
        word, shift, nothing = [0] * count, [0] * count, [0] * len(words)
        for number, members in enumerate(words):
            at = 0
            for level in reversed(members):
                word[level], shift[level] = number, at
                nothing[number] |= int(lasts[level]) << at
                at += width[level]
        masks = tuple((1 << bits) - 1 for bits in width)
        return cls(tuple(word), tuple(shift), masks, tuple(nothing))

    def option(self, words: Words, level: int) -> NDArray[np.int64]:
        """Option of one level in each of n assignments, shape ``(n,)``."""
        return (words[self.word[level]] >> self.shift[level]) & self.mask[level]

    def options_of(self, key: Sequence[int]) -> list[int]:
        """Options of all levels of one assignment."""
        return [
            (key[word] >> shift) & mask
            for word, shift, mask in zip(self.word, self.shift, self.mask, strict=True)
        ]

    def encode(self, options: Sequence[NDArray[np.intp]]) -> tuple[NDArray[np.int64], ...]:
        """Words of n assignments given by their options, ``(n,)`` for each level."""
        size = len(options[0]) if options else 0
        words = [np.zeros(size, np.int64) for _ in self.nothing]
        for level, chosen in enumerate(options):
            words[self.word[level]] |= np.asarray(chosen, np.int64) << self.shift[level]
        return tuple(words)
