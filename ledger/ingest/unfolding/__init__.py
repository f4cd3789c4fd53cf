"""Files in which records do not stand one by one: each module makes flat records, as JSON objects, of one kind of them.

Takes a file piece by piece and gives its records in order, each with the line of the source (from 1) that it comes from. Numbers of the
source are texts in them. What is no record stays what it is, a text that the event rules refuse. A mapping asks for its module by
`reader: {unfold: NAME}`. Source: specification, section 2.
"""

import importlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Protocol, cast

START_BYTES = 65_536  # of the content, by which its kind is recognised


class Unfolding(StrEnum):
    """The kinds of files, by the name of their module; the first one that fits is it."""

    OTLP = "otlp"
    VLLM_BENCH = "vllm_bench"
    PROMETHEUS_TEXT = "prometheus_text"
    LISTED = "listed"


# What these give are the records as they stand in the file, numbers too, so that no mapping has to ask for it.
PLAIN = frozenset({Unfolding.LISTED})


class Broken(ValueError):
    """The file is not what it looked like; the message says what was found."""


class Unfolder(Protocol):
    """What a module has to have."""

    def fits(self, start: bytes) -> bool:
        """Whether the file is of this kind; `start` are its first bytes, decompressed: START_BYTES, or all that there are."""
        ...

    def unfold(self, pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """The records of the content: line of the source, and a JSON object on one line. Memory does not grow with the file, or Broken is
        raised where it would."""
        ...


def unfolder(kind: Unfolding) -> Unfolder:
    """The module of this kind, imported when it is needed."""
    return cast(Unfolder, importlib.import_module(f"{__name__}.{kind}"))


def unfolding_of(start: bytes) -> Unfolding | None:
    """The kind of a file that begins so; None for one whose records stand one by one."""
    return next((kind for kind in Unfolding if unfolder(kind).fits(start)), None)
