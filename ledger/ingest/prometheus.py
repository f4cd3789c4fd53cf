"""Answers of a Prometheus server (JSON) and scrapes (text) become series of exact samples: bytes in, values out, no I/O.

A value is the decimal that stands in the text, an instant microseconds since 1970: nothing passes through binary floating point. NaN, +Inf
and -Inf (stale markers are NaN) are no samples; they are counted. What is read is hostile: whatever does not have the shape of an answer is
refused as a whole. Source: the HTTP API and the text format of Prometheus; telemetry of vLLM and of DCGM exporter.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from ledger.errors import LedgerError

Number: TypeAlias = int | Fraction

NAME = "__name__"
END_US = 32_503_680_000 * 1_000_000  # the year 3000
_CURE = 'give the JSON of /api/v1/query_range, or of /api/v1/query with a range such as {__name__=~"..."}[1h]'

_DECIMAL = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")
_NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\s*\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s*|\s+)(\S+)(?:\s+-?[0-9]+)?')
_ESCAPED = re.compile(r"\\(.)")
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one label set (`__name__` is the metric's name, if it has one): instants in microseconds since 1970, and as many values.

    `not_numbers` samples were NaN or infinite, `contradicting` ones said something else than another of the same instant: neither is here.
    """

    labels: Mapping[str, str]
    at_us: Sequence[int]
    values: Sequence[Number]
    not_numbers: int = 0
    contradicting: int = 0

    @property
    def name(self) -> str:
        """The metric; empty if a query left none."""
        return self.labels.get(NAME, "")


def read_answer(content: bytes, place: str) -> list[Series]:
    """The series of an answer whose result is a matrix, in its order. Raises LedgerError, which names the place, if it is anything else, or
    comes with a warning: of several stores that were asked, one may not have answered."""
    try:
        answer = json.loads(content, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError as error:
        raise _refused(place, "it is nested too deeply") from error
    except ValueError as error:  # also what is not UTF-8
        raise _refused(place, "it is no JSON") from error
    try:
        if _part(answer, dict, "the object").get("status") != "success":
            raise Misshapen("its status is not success")
        data = _part(answer.get("data"), dict, "data")
        if data.get("resultType") != "matrix":
            raise Misshapen("its result is no matrix of samples")
        if warnings := answer.get("warnings"):
            said = f"{place}: the answer warns that it may not be whole: {str(warnings)[:300]}"
            raise LedgerError(said, cure="ask again when all that Prometheus asks can be reached")
        return [_series(one) for one in _part(data.get("result"), list, "a list of results")]
    except Misshapen as error:
        raise _refused(place, str(error)) from error


def read_scrape(content: bytes, at_us: int, place: str) -> list[Series]:
    """The series of a scrape (the text of /metrics), each with one sample at the instant. Comments are skipped."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise LedgerError(f"{place}: not UTF-8", cure="give the text of /metrics") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip()) if len(line) <= 10_000 else None
        try:
            if match is None:
                raise Misshapen("it is no sample")
            labels, value = _labels(match[2] or ""), exact(match[3])
        except Misshapen as error:
            raise LedgerError(f"{place}:{number}: {error}", cure="give the text of /metrics as the engine wrote it") from error
        samples = ([], []) if value is None else ([at_us], [value])
        found.append(Series(labels={**labels, NAME: match[1]}, at_us=samples[0], values=samples[1], not_numbers=int(value is None)))
    return found


def merged(series: Iterable[Series]) -> list[Series]:
    """One series per label set, by instant, whatever the order and the split; a sample that is there twice counts once."""
    parts: dict[frozenset[tuple[str, str]], list[Series]] = {}
    for one in series:
        parts.setdefault(frozenset(one.labels.items()), []).append(one)
    return [joined(some, some[0].labels) for some in parts.values()]


def joined(parts: Sequence[Series], labels: Mapping[str, str]) -> Series:
    """The parts as one series with these labels, by instant."""
    values: dict[int, Number | None] = {}
    contradicting = sum(part.contradicting for part in parts)
    for part in parts:
        for at_us, value in zip(part.at_us, part.values, strict=True):
            known = values.setdefault(at_us, value)
            if known is not None and known != value:
                values[at_us] = None
    kept = sorted((at_us, value) for at_us, value in values.items() if value is not None)
    return Series(
        labels=labels,
        at_us=array("q", [at_us for at_us, _ in kept]),
        values=[value for _, value in kept],
        not_numbers=sum(part.not_numbers for part in parts),
        contradicting=contradicting + len(values) - len(kept),
    )


def cut(series: Series, start_us: int | None, end_us: int | None) -> Series:
    """The series with the samples in [start, end] alone; None does not bound."""
    if start_us is None and end_us is None:
        return series
    first, last = -1 if start_us is None else start_us, END_US if end_us is None else end_us
    kept = [place for place, at_us in enumerate(series.at_us) if first <= at_us <= last]
    return replace(series, at_us=array("q", [series.at_us[place] for place in kept]), values=[series.values[place] for place in kept])


@lru_cache(maxsize=1 << 16)
def exact(text: str) -> Number | None:
    """The number of a decimal text; None for NaN and the infinities."""
    if text.isdecimal() and text.isascii() and len(text) <= 18:
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = Fraction(text)
        return int(number) if number.denominator == 1 else number
    if _NO_NUMBER.fullmatch(text):
        return None
    raise Misshapen(f"{text[:60]!r} is no number")


def decimal_of(number: Number, digits: int = 6) -> Decimal:
    """The number with so many digits after the point, half even: for showing it."""
    return Decimal(round(number * 10**digits)).scaleb(-digits)


def _instant_us(text: str) -> int:
    """Microseconds since 1970 of decimal seconds, rounded half even."""
    seconds, _, rest = text.partition(".")
    if len(seconds) == 10 and seconds.isdecimal() and len(rest) <= 6 and (rest.isdecimal() or not rest) and text.isascii():
        return int(seconds) * 1_000_000 + int(rest.ljust(6, "0"))
    number = exact(text)
    if number is None or not 0 <= number * 1_000_000 < END_US:
        raise Misshapen(f"{text[:60]!r} is no instant")
    return round(number * 1_000_000)


class Misshapen(ValueError):
    """What was read is not what it should be; the message says how."""


def _refused(place: str, why: str) -> LedgerError:
    return LedgerError(f"{place}: this is no answer of Prometheus that can be read: {why}", cure=_CURE)


def _part(value: object, kind: type[_Kind], what: str) -> _Kind:
    if not isinstance(value, kind):
        raise Misshapen(f"{what} is missing")
    return value


def _series(result: object) -> Series:
    one = _part(result, dict, "an object for each result")
    labels = _part(one.get("metric"), dict, "metric")
    for name, value in labels.items():
        _part(value, str, f"the text of the label {name[:60]!r}")
    at_us, values, not_numbers = array("q"), [], 0
    for instant, value in _samples(_part(one.get("values"), list, "values")):
        number = exact(value)
        if number is None:
            not_numbers += 1
        else:
            at_us.append(_instant_us(instant))
            values.append(number)
    return Series(labels=labels, at_us=at_us, values=values, not_numbers=not_numbers)


def _samples(values: list[Any]) -> Iterator[tuple[str, str]]:
    for sample in values:
        if not (isinstance(sample, list) and len(sample) == 2 and isinstance(sample[0], str) and isinstance(sample[1], str)):
            raise Misshapen('a sample is not [seconds, "value"]')
        yield sample[0], sample[1]


def _labels(text: str) -> dict[str, str]:
    """The labels of a line, all of what stands between its braces."""
    labels, place = {}, 0
    while text[place:].strip():
        match = _LABEL.match(text, place)
        if match is None:
            raise Misshapen("its labels cannot be read")
        labels[match[1]] = _ESCAPED.sub(_unescaped, match[2])
        place = match.end()
    return labels


def _unescaped(match: "re.Match[str]") -> str:
    return "\n" if match[1] == "n" else match[1]
