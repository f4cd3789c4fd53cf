"""Rows of a gateway and of an engine to requests: tries and answers folded, and the engine's figures put to them. Source: specification,
section 2; decision record halves.

Takes rows as `tests.ingest.halves` writes them, in any order, with keys that at most one request of the other role has, and at most one
answer without tokens for each call: of two the engine's figures stay with the one that had them first.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Row = dict[str, Any]
NEXT_TRY = timedelta(seconds=60)
RETRIED = (408, 409, 429)  # errors of a client after which the same request may be sent again


@dataclass
class Request:
    """What stands for one logical request. `complete` if it can be an event: an answer without tokens cannot."""

    rows: list[Row]
    event: tuple[Any, ...]
    complete: bool


def requests_of(gateway: list[Row], engine: list[Row]) -> tuple[dict[str, Request], list[str]]:
    """The requests by the id of the row that stands for each, and the requests of engines that belong to none."""
    calls: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in {row["id"]: row for row in gateway}.values():
        calls[row["customer"], row.get("call", row["id"])].append(row)
    children: dict[str, list[Row]] = defaultdict(list)
    for row in {row["span"]: row for row in engine}.values():
        children[f"{row.get('trace', row['span'])}/{row['header']}"].append(row)
    requests, waiting = {}, dict(children)
    for rows in calls.values():
        found = _answers(rows)
        order = sorted(found, key=lambda name: (*_needs_figures(found[name]), _final(found[name][0]), _start(found[name]), name))
        for name in order:
            mine = None
            if name == order[0]:
                mine = next((key for key, spans in waiting.items() if any(_same_key(row, span) for row in rows for span in spans)), None)
            requests[name] = _request(found[name], waiting[mine] if mine else [])
            if mine and requests[name].complete:
                del waiting[mine]
    return requests, sorted(waiting)


def _same_key(row: Row, span: Row) -> bool:
    return span["header"] == row["header"] or ("trace" in row and row["trace"] == span.get("trace"))


def _answers(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of one call by the answer that they are or led to."""
    groups: dict[str, list[Row]] = defaultdict(list)
    run: list[Row] = []
    runs = [run]
    for row in sorted((row for row in rows if not _final([row][0])), key=lambda row: (_at(row), row["id"])):
        if run and _at(row) > max(_end(one) for one in run) + NEXT_TRY:
            run = []
            runs.append(run)
        run.append(row)
    for row in rows:
        if _final(row):
            groups[row["id"]].append(row)
    names: dict[tuple[Any, ...], str] = {}
    for row in sorted((row for row in rows if _answered(row)), key=lambda row: row["id"]):
        names.setdefault((row["at"], row.get("in"), row.get("out")), row["id"])
    for run in runs:
        answers = [row for row in run if _answered(row)]
        for row in run:
            standing = row if _answered(row) else answers[0] if answers else None
            if standing is None:
                groups[min(one["id"] for one in run)].append(row)
            else:
                groups[names[standing["at"], standing.get("in"), standing.get("out")]].append(row)
    return groups


def _request(rows: list[Row], spans: list[Row]) -> Request:
    last = _last(rows)
    before = round((_at(last) - _start(rows)).total_seconds() * 1000)
    ttft = None if last.get("first_ms") is None else (last["first_ms"] + before) * 1000
    queue = inference = None
    tokens = (last.get("in"), last.get("out"))
    if spans:
        slowest = max(spans, key=lambda span: (span["wait_ms"] + span["run_ms"], [-ord(letter) for letter in span["span"]]))
        queue, inference = slowest["wait_ms"] * 1000, slowest["run_ms"] * 1000
        tokens = (max(span["in"] for span in spans), sum(span["out"] for span in spans))
    complete = not _answered(last) or None not in tokens
    started = _start(rows).strftime("%M:%S.") + f"{_start(rows).microsecond // 1000:03d}"
    return Request(rows, (started, queue, inference, ttft, (last["ms"] + before) * 1000, *tokens, last["code"]), complete)


def _needs_figures(rows: list[Row]) -> tuple[bool, bool]:
    """Sorts an answer before what is none, and one without tokens before others."""
    last = _last(rows)
    return not _answered(last), not _answered(last) or "in" in last


def _last(rows: list[Row]) -> Row:
    """The row that the customer got: an answer, else the latest to end."""
    answers = [row for row in rows if _answered(row)] or rows
    end = max(_end(row) for row in answers)
    return min((row for row in answers if _end(row) == end), key=lambda row: row["id"])


def _answered(row: Row) -> bool:
    return 200 <= row["code"] <= 299


def _final(row: Row) -> bool:
    return 400 <= row["code"] <= 499 and row["code"] not in RETRIED


def _start(rows: list[Row]) -> datetime:
    return min(_at(row) for row in rows)


def _end(row: Row) -> datetime:
    return _at(row) + timedelta(milliseconds=row["ms"])


def _at(row: Row) -> datetime:
    return datetime.fromisoformat(row["at"])
