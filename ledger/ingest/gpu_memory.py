"""Samples of GPU memory, from DCGM exporter through Prometheus or from CSV: per GPU, whether the memory in use is above a share. No I/O.

Takes series or the bytes of a CSV file and gives `Readings`. Whatever the source counts becomes memory in use and memory that is free, and
is compared exactly: used > share x (used + free). Source: clause 3.1; decision record breaker-intervals.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from ledger.contract.scalar import parse_instant
from ledger.errors import LedgerError
from ledger.ingest.prometheus import NAME, Number, Series, exact, joined, merged
from ledger.instant import since_1970_us
from ledger.spreadsheet import delimiter_of

Unit = Literal["percent", "share"]

USED, FREE, RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
SELECTOR = f'{{{NAME}=~"{USED}|{FREE}"}}'
NODE_LABELS = ("Hostname", "node", "instance")
# What tells the GPUs of a node apart; the other labels (the pod that uses it) come and go while the samples of the GPU go on.
GPU_LABELS = ("gpu", "UUID", "device", "GPU_I_ID", "GPU_I_PROFILE")
LONGEST_NAME = 200

_PERCENT, _TOTAL, _GPU = {"node", "at", "percent"}, {"node", "at", "used", "total"}, {"gpu"}
_COLUMNS = "the columns are node,at,percent or node,at,used,total, and gpu where a node has several"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """One GPU of a node: whether its memory was above the limit, by instant. `left_out` samples say nothing: no numbers, used without free,
    no memory at all, or two that contradict each other."""

    node: str
    samples: Sequence[tuple[int, bool]]
    left_out: int


def csv_series(content: bytes, place: str) -> list[Series]:
    """The samples of a CSV file as the series that DCGM exporter would give. Raises LedgerError with the line that is wrong."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise LedgerError(f"{place}: not UTF-8", cure="save the file as UTF-8") from error
    delimiter = delimiter_of(lines[0] if lines else "")
    reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
    rows: dict[tuple[str, str], list[tuple[int, Number | None, Number | None]]] = {}
    try:
        names = reader.fieldnames or []
        if set(names) - _GPU not in (_PERCENT, _TOTAL) or len(set(names)) != len(names):
            raise LedgerError(f"{place}:1: found the columns {', '.join(names)}", cure=_COLUMNS)
        for row in reader:
            if None in row or None in row.values():
                raise ValueError("another number of cells than the header has")
            used, total = exact(row["percent" if "percent" in row else "used"]), exact(row.get("total", "100"))
            if used is not None and total is not None and not 0 <= used <= total:
                raise ValueError(f"{used} of {total} cannot be in use")
            rows.setdefault((row["node"], row.get("gpu", "")), []).append((since_1970_us(parse_instant(row["at"])), used, total))
    except (ValueError, csv.Error) as error:
        raise LedgerError(f"{place}:{reader.line_num}: {error}", cure="repair the line; nothing was read") from error
    return [part for (node, gpu), some in rows.items() for part in _used_and_free({"Hostname": node, "gpu": gpu}, some)]


def readings(series: Iterable[Series], *, above: Fraction, node_label: str | None = None, unit: Unit | None = None) -> list[Readings]:
    """Per GPU, by node, whether more than the share `above` of its memory is in use.

    Series of other metrics than those of DCGM are ratios in `unit`; without a unit they are left alone. `node_label` says the node, else
    the first of NODE_LABELS that a series has. Raises LedgerError if there is nothing to read, or a series names no node.
    """
    gpus: dict[tuple[str, object], dict[str, list[Series]]] = {}
    for one in merged(series):
        if one.name in (USED, FREE):
            parts = [one]
        elif unit is not None and one.name != RESERVED:
            parts = _ratio(one, unit)
        else:
            continue
        known = tuple((name, one.labels[name]) for name in GPU_LABELS if one.labels.get(name))
        kinds = gpus.setdefault((_node(one, node_label), known or frozenset(one.labels.items() - {(NAME, one.name)})), {})
        for part in parts:
            kinds.setdefault(part.name, []).append(part)
    if not gpus:
        cure = f"give {USED} and {FREE}, or a ratio and what it is: --unit percent or --unit share"
        raise LedgerError("there are no samples of GPU memory", cure=cure)
    return [_readings(node, kinds, above) for (node, _), kinds in sorted(gpus.items(), key=lambda item: item[0][0])]


def _readings(node: str, kinds: dict[str, list[Series]], above: Fraction) -> Readings:
    used, free = (joined(kinds.get(name, []), {NAME: name}) for name in (USED, FREE))
    free_at = dict(zip(free.at_us, free.values, strict=True))
    samples = []
    for at_us, value in zip(used.at_us, used.values, strict=True):
        rest = free_at.get(at_us, -1)
        if value >= 0 and rest >= 0 and value + rest > 0:
            samples.append((at_us, value * above.denominator > above.numerator * (value + rest)))
    read = max(len(one.at_us) + one.not_numbers + one.contradicting for one in (used, free))
    return Readings(node=node, samples=samples, left_out=read - len(samples))


def _ratio(one: Series, unit: Unit) -> list[Series]:
    """A series of shares or percentages as the two of DCGM."""
    whole = 100 if unit == "percent" else 1
    wrong = next((value for value in one.values if not 0 <= value <= whole), None)
    if wrong is not None:
        raise LedgerError(f"{wrong} is no {unit} of a memory", cure="say what the query gives: --unit percent or --unit share")
    parts = _used_and_free(one.labels, [(at_us, value, whole) for at_us, value in zip(one.at_us, one.values, strict=True)])
    return [replace(part, not_numbers=one.not_numbers, contradicting=one.contradicting) for part in parts]


def _used_and_free(labels: Mapping[str, str], rows: Sequence[tuple[int, Number | None, Number | None]]) -> list[Series]:
    """Rows of instant, memory in use and all memory as the two series of DCGM; a row without numbers is counted."""
    good = [(at_us, used, total - used) for at_us, used, total in rows if used is not None and total is not None]
    columns = {USED: [used for _, used, _ in good], FREE: [free for _, _, free in good]}
    at_us = [at_us for at_us, _, _ in good]
    lost = len(rows) - len(good)
    return [Series(labels={**labels, NAME: name}, at_us=at_us, values=values, not_numbers=lost) for name, values in columns.items()]


def _node(one: Series, label: str | None) -> str:
    node = next((one.labels[name] for name in ([label] if label else NODE_LABELS) if one.labels.get(name)), "")
    if not node:
        what = f"the metric {one.name}" if one.name else "the query"
        labels = label or ", ".join(NODE_LABELS)
        raise LedgerError(f"a series of {what} has no label {labels}", cure="say which label is the node: --node-label")
    if len(node) > LONGEST_NAME or not node.isprintable():  # no file of intervals could hold it
        raise LedgerError(f"{node[:60]!r} is no name of a node", cure=f"a name is one line of at most {LONGEST_NAME} characters")
    return node
