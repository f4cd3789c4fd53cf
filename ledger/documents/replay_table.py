"""A month under two contracts side by side: statements in; amounts, service level, lines and windows that differ out, as tables or JSON.

Every figure is one of a statement or the difference of two. Source: specification, section 9 (`ledger contract diff --replay`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.documents.contract_prose.forms import markdown_of
from ledger.documents.local_time import window_words_local
from ledger.documents.number import amount_text, grouped_amount, grouped_count
from ledger.documents.replay_words import ReplayWords
from ledger.documents.settlement_json import statement_to_json
from ledger.documents.text_table import Table, written
from ledger.instant import instant_text
from ledger.printable import printable
from ledger.settlement.difference import BreachPair, LinePair, breach_pairs, line_pairs
from ledger.settlement.statement import Breach, LineKind, Statement

AMOUNTS = ("charges", "true_up", "credits", "net", "tax", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """A heading, the headings of columns (those of numbers begin with >), the rows, and a line below them (empty for none)."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: str = ""


def replay_tables(before: Statement, after: Statement, words: ReplayWords) -> list[SideBySide]:
    """The tables, those without a row left out."""
    tables = [_amounts(before, after, words), _level(before, after, words), _lines(before, after, words), _breaches(before, after, words)]
    return [table for table in tables if table.rows or table.below]


def replay_text(before: Statement, after: Statement, notes: Sequence[str], words: ReplayWords) -> str:
    """For a terminal."""
    return "\n".join(_text_lines(before, after, notes, words)) + "\n"


def replay_markdown(before: Statement, after: Statement, notes: Sequence[str], words: ReplayWords) -> str:
    """Tables as GitHub and most other readers of Markdown know them."""
    lines = [f"## {markdown_of(_title(after, words))}"]
    for table in replay_tables(before, after, words):
        lines += ["", f"### {markdown_of(table.heading)}"]
        if table.rows:
            lines += ["", _markdown_row([column.removeprefix(">") for column in table.columns])]
            lines.append(f"|{'|'.join('---:' if column.startswith('>') else '---' for column in table.columns)}|")
            lines += [_markdown_row(row) for row in table.rows]
        if table.below:
            lines += ["", markdown_of(table.below)]
    if notes:
        lines += ["", *(f"- {markdown_of(printable(note))}" for note in notes)]
    return "\n".join(lines) + "\n"


def replay_json(before: Statement, after: Statement, notes: Sequence[str]) -> dict[str, Any]:
    """Both statements as `settle` gives them, and what differs: amounts, lines and windows."""
    digits = after.minor_digits
    return {
        "period": after.period,
        "currency": after.contract.money.currency,
        "notes": list(notes),
        "old": statement_to_json(before),
        "new": statement_to_json(after),
        "difference": {
            "totals": {name: amount_text(getattr(after.totals, name) - getattr(before.totals, name), digits) for name in AMOUNTS},
            "lines": [_line_json(pair, digits) for pair in line_pairs(before, after) if not _is_equal(pair)],
            "windows": [
                {
                    "start": instant_text(pair.breach.start),
                    "end": instant_text(pair.breach.end),
                    "scope": pair.breach.scope,
                    "pooled": pair.breach.pooled,
                    "before": None if pair.before is None else pair.before.verdict.value,
                    "after": None if pair.after is None else pair.after.verdict.value,
                }
                for pair in _differing_breaches(before, after)
            ],
        },
    }


def either_way_lines(value: str, written: Statement, otherwise: Statement) -> list[str]:
    """One line for the month as a contract is written, one with another value in it, and one for the difference, for people."""
    changed = _signed_amount(otherwise.totals.total - written.totals.total, written.minor_digits)
    names = (f"{written.period} as written", f"with {printable(value)}")
    width = max(map(len, names))
    lines = [f"{name:<{width}}  {_in_short(statement)}" for name, statement in zip(names, (written, otherwise), strict=True)]
    return [*lines, f"{'difference':<{width}}  {changed} {written.contract.money.currency}"]


def either_way_json(value: str, written: Statement, otherwise: Statement) -> dict[str, Any]:
    """The same for programs."""
    return {
        "period": written.period,
        "currency": written.contract.money.currency,
        "value": value,
        "written": _figures_json(written),
        "otherwise": _figures_json(otherwise),
    }


def _in_short(statement: Statement) -> str:
    totals, digits, budget, events = statement.totals, statement.minor_digits, statement.budget, statement.events
    figures = [
        f"total {grouped_amount(totals.total, digits)} {statement.contract.money.currency}",
        f"charges {grouped_amount(totals.charges, digits)}",
        f"refunds {grouped_amount(totals.credits, digits)}",
        f"late requests {grouped_count(events.late)}",
        f"breaches {grouped_count(statement.windows.breached)} ({budget.used} forgiven, {budget.refunded} refunded)",
    ]
    missing = [f"billed without a latency {grouped_count(events.missing_latency)}"] if events.missing_latency else []
    return ", ".join([*figures, *missing])


def _figures_json(statement: Statement) -> dict[str, Any]:
    document = statement_to_json(statement)
    return {"totals": {name: document["totals"][name] for name in AMOUNTS}, "events": document["events"], "budget": document["budget"]}


def _title(statement: Statement, words: ReplayWords) -> str:
    return words["title"].format(month=statement.period, currency=statement.contract.money.currency)


def _text_lines(before: Statement, after: Statement, notes: Sequence[str], words: ReplayWords) -> Iterator[str]:
    yield _title(after, words)
    for shown in replay_tables(before, after, words):
        yield ""
        yield shown.heading
        if shown.rows:
            table = Table(*shown.columns)
            for row in shown.rows:
                table.add_row(*row)
            yield from (line.rstrip("\n") for line in written(table.lines(), is_coloured=False))
        if shown.below:
            yield f"  {shown.below}"
    if notes:
        yield ""
    for note in notes:
        yield f"  ! {printable(note)}"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_of, cells))} |"


def _changed(before_minor: int, after_minor: int, digits: int) -> tuple[str, str, str]:
    """Both amounts and the difference, with its sign."""
    return grouped_amount(before_minor, digits), grouped_amount(after_minor, digits), _signed_amount(after_minor - before_minor, digits)


def _signed_amount(changed_minor: int, digits: int) -> str:
    return f"{'+' if changed_minor > 0 else ''}{grouped_amount(changed_minor, digits)}"


def _amounts(before: Statement, after: Statement, words: ReplayWords) -> SideBySide:
    rows = [
        (words[name], *_changed(getattr(before.totals, name), getattr(after.totals, name), after.minor_digits))
        for name in AMOUNTS
        if name != "true_up" or before.totals.true_up or after.totals.true_up
    ]
    columns = ("", f">{words['before']}", f">{words['after']}", f">{words['difference']}")
    return SideBySide(heading=words["money"], columns=columns, rows=tuple(rows))


def _level(before: Statement, after: Statement, words: ReplayWords) -> SideBySide:
    """What was counted and judged; a row that is 0 on both sides is left out."""
    sources = {
        **dict.fromkeys(("billed", "missing_latency", "late"), "events"),
        **dict.fromkeys(("judged", "breached", "insufficient", "overload"), "windows"),
        **dict.fromkeys(("allowed", "used", "refunded"), "budget"),
    }
    rows = []
    for name, source in sources.items():
        old, new = (getattr(getattr(statement, source), name) for statement in (before, after))
        if old or new:
            rows.append((words[name], grouped_count(old), grouped_count(new), f"{new - old:+,}" if new != old else "0"))
    columns = ("", f">{words['before']}", f">{words['after']}", f">{words['difference']}")
    return SideBySide(heading=words["level"], columns=columns, rows=tuple(rows))


def _is_equal(pair: LinePair) -> bool:
    return pair.amounts_minor[0] == pair.amounts_minor[1] and pair.quantities[0] == pair.quantities[1]


def _lines(before: Statement, after: Statement, words: ReplayWords) -> SideBySide:
    rows, equal, digits = [], [], after.minor_digits
    for pair in line_pairs(before, after):
        if _is_equal(pair):
            equal.append(pair)
            continue
        kind, model, variant, queue, forfeited, band, token = pair.key
        what = words[f"line_{kind.value}"]
        if kind in (LineKind.USAGE, LineKind.CREDIT):
            what += f"{printable(model or '')}{words['comma']}{_band(band, words)}{f' [{printable(variant)}]' if variant else ''}"
        tokens = [grouped_count(quantity) if quantity else words["none"] for quantity in pair.quantities]
        where = f"{queue or ''} ({words['forfeited']})" if forfeited else queue or ""
        rows.append((what, where, words[f"token_{token}"] if token else "", *tokens, *_changed(*pair.amounts_minor, digits)))
    amount = grouped_amount(sum(pair.amounts_minor[0] for pair in equal), digits)
    columns = (
        *("", words["queue"], words["token"], f">{words['tokens_before']}", f">{words['tokens_after']}"),
        *(f">{words[name]}" for name in ("before", "after", "difference")),
    )
    below = words["equal"].format(count=grouped_count(len(equal)), amount=amount) if equal else ""
    return SideBySide(heading=words["lines"], columns=columns, rows=tuple(rows), below=below)


def _band(band: str | None, words: ReplayWords) -> str:
    """The name of a tier as it is, of any other band as the language calls it."""
    return words.texts.get(f"band_{band}") or str(band)


def _differing_breaches(before: Statement, after: Statement) -> list[BreachPair]:
    return [pair for pair in breach_pairs(before, after) if _result(pair.before) != _result(pair.after)]


def _result(breach: Breach | None) -> tuple[str, bool] | None:
    return None if breach is None else (breach.verdict.value, breach.over)


def _breaches(before: Statement, after: Statement, words: ReplayWords) -> SideBySide:
    rows = []
    for pair in _differing_breaches(before, after):
        breach, statement = pair.breach, after if pair.before is None else before
        zone = statement.contract.calendar.timezone
        when = window_words_local(breach.start, breach.end, (statement.start, statement.end), zone, words.window)
        pooled = f" ({words['pooled']})" if breach.pooled else ""
        scope = words["all_models"] if statement.contract.objective.scope == "contract" else printable(breach.scope)
        rows.append((f"{when}{pooled}", scope, _verdict(pair.before, words), _verdict(pair.after, words)))
    columns = (words["window"], words["scope"], words["before"], words["after"])
    return SideBySide(heading=words["breaches"], columns=columns, rows=tuple(rows))


def _verdict(breach: Breach | None, words: ReplayWords) -> str:
    if breach is None:
        return words["none"]
    verdict = words[f"verdict_{breach.verdict.value}"]
    return f"{verdict}{words['comma']}{words['over']}" if breach.over else verdict


def _line_json(pair: LinePair, digits: int) -> dict[str, Any]:
    (old_tokens, new_tokens), (old, new) = pair.quantities, pair.amounts_minor
    return {
        **pair.key._asdict(),
        "quantity": {"before": old_tokens, "after": new_tokens},
        "amount": {"before": amount_text(old, digits), "after": amount_text(new, digits), "difference": amount_text(new - old, digits)},
    }
