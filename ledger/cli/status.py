"""`ledger status`: what is in the database, and what waits for somebody."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

import click

from ledger.cli.options import echo_json, format_option, pass_database
from ledger.documents.number import grouped_count, plain_amount
from ledger.documents.text_table import Line, Span, Style, Table, write_lines
from ledger.instant import instant_text, second_text
from ledger.printable import printable
from ledger.settlement.statement import CauseKind
from ledger.store.database import Database
from ledger.store.overview import FileLoaded
from ledger.store.pairing import WITHIN
from ledger.store.unmet import LOOKED_AT
from ledger.workflows.checklist import MonthEnd, MonthOfContract, Step
from ledger.workflows.named_request import request_command
from ledger.workflows.status import Status, ledger_status

STEP_STYLES = dict.fromkeys((Step.UNAPPROVED, Step.OPEN, Step.OUTDATED, Step.PASSED_BY, Step.DRAFT), Style.YELLOW)
_CAUSES = {
    CauseKind.CONTRACT: "{} of its contract's versions",
    CauseKind.CORRECT: "{} corrected",
    CauseKind.INTERVAL: "{} intervals",
    CauseKind.JOIN: "{} joined with their engine's",
    CauseKind.LATE: "{} late",
    CauseKind.VOID: "{} withdrawn",
}
SHOWN_MONTHS = 4  # of those that wait to be computed again
_EVERY_LOAD, _SOME_LOADS = ("read", "new", "duplicate", "refused", "conflict"), ("skipped", "merged", "joined")


@click.command()
@format_option
@pass_database
def status(database: Database, output_format: str) -> None:
    """Show what is in the database: requests by account and month, the last loads, what
    each month waits for before it is closed, and what waits for somebody.

    Months of accounts are those of UTC. Nothing is computed anew. Requests are read only of closed months, if anything came in since.

    \b
    Examples:
      ledger status
      ledger status --format json
    """
    found = ledger_status(database)
    if output_format == "json":
        echo_json(_json(found))
    elif sys.stdout is not None:
        write_lines(_lines(found), sys.stdout)


def _lines(found: Status) -> Iterator[Line]:
    yield (Span("1 request" if found.requests == 1 else f"{grouped_count(found.requests)} requests", Style.BOLD),)
    if found.months:
        table = Table("Account", "Month (UTC)", ">Requests", ">Without a contract")
        for one in found.months:
            table.add_row(printable(one.account), one.month, grouped_count(one.requests), _figure(one.unassigned))
        yield from table.lines()
    yield from _waiting(found)
    yield from _month_end(found.month_end)
    if found.loads:
        yield from _headed("Last loads, each time a file was loaded")
        yield from _load_table(found.loads).lines()


def _month_end(found: MonthEnd) -> Iterator[Line]:
    """Which months are to be settled and closed, in order; what closed ones will adjust; whom something is to be paid out."""
    if found.months:
        yield from _headed("Month end")
        table = Table("Contract", "Month", "", "")
        for (contract, step), group in groupby(found.months, key=lambda one: (one.contract, one.step)):
            months = list(group)  # one row: they go on one by one
            first, last = months[0], months[-1]
            state = step.value if first.document is None else f"{step.value}: {first.document}"
            span = first.period if first is last else f"{first.period} to {last.period}"
            table.add_row(printable(contract), span, Span(state, STEP_STYLES.get(step, Style.PLAIN)), _goes_on(first))
        yield from table.lines()
    if found.changed:
        yield from _headed("Changed since it was closed or adjusted: the next month that is settled carries the difference")
        table = Table("Contract", "Month", "Document", "")
        for changed in found.changed:
            causes = ", ".join(_CAUSES[kind].format(grouped_count(number)) for kind, number in changed.causes.items())
            table.add_row(printable(changed.contract), changed.period, changed.document, causes)
        yield from table.lines()
    if found.payouts:
        yield from _headed("To be paid out: the balance of contracts that have ended")
        table = Table("Contract", ">Amount")
        for payout in found.payouts:
            table.add_row(printable(payout.contract), plain_amount(payout.amount_minor, payout.minor_digits, payout.currency))
        yield from table.lines()


def _goes_on(one: MonthOfContract) -> str:
    """What the month waits for: a time, an earlier month, or commands."""
    if one.until is not None:
        return f"until {second_text(one.until)}"
    if one.after is not None:
        return f"when {one.after} is closed"
    return printable("; ".join(one.commands))


def _load_table(loads: Sequence[FileLoaded]) -> Table:
    """What became of the rows of each load: those that were read are the sum of the others but `joined`, which are requests."""
    counted = (*_EVERY_LOAD, *(name for name in _SOME_LOADS if any(getattr(load, name) for load in loads)))
    table = Table("File", "Mapping", "At", "By", *(f">{name.capitalize()}" for name in counted))
    for load in loads:
        shown = [grouped_count(load.read), grouped_count(load.new), *(_figure(getattr(load, name)) for name in counted[2:])]
        table.add_row(printable(load.file), printable(load.mapping), second_text(load.at), printable(load.author), *shown)
    return table


def _waiting(found: Status) -> Iterator[Line]:
    """What somebody has to do, and how."""
    yield from _headed("Waiting for somebody")
    table = Table("", ">", "")
    if found.conflicts:
        table.add_row("rows in conflict", grouped_count(found.conflicts), "ledger quarantine list --reason conflict")
    for reason, number in found.quarantine.items():
        table.add_row(f"rows refused: {reason}", grouped_count(number), f"ledger quarantine list --reason {reason}")
    if found.unjoined.alone:
        since = "" if found.unjoined.since is None else f"load their gateway's log since {second_text(found.unjoined.since)}; "
        since += "where several share a trace or header, none is joined"
        table.add_row("engines' requests without a gateway's", grouped_count(found.unjoined.alone), since)
    if found.unjoined.first_apart is not None:
        table.add_row("pairs of halves that cannot be joined", grouped_count(found.unjoined.kept_apart), _why(found.unjoined.first_apart))
    unmet = found.unjoined.unmet
    for what, count, first, looked_at in (
        (f"gateways' rows with an engine's over {WITHIN} away", unmet.far, unmet.first_far, found.unjoined.alone),
        ("gateways' rows whose engine's was refused", unmet.refused, unmet.first_refused, sum(found.quarantine.values())),
    ):
        if first is not None:
            table.add_row(what, grouped_count(count) + (" or more" if looked_at > LOOKED_AT else ""), _why(*first))
    if found.unassigned:
        table.add_row("requests without a contract", grouped_count(found.unassigned), "ledger contract add FILE")
    for unrated in found.unrated:
        what = f"{printable(unrated.contract)}, {unrated.period}: unknown {unrated.what} {printable(unrated.name)}"
        how = f"ledger settle {unrated.period} --dry-run --provisional says what to do"
        table.add_row(what, grouped_count(unrated.requests), how)
    if found.unapproved:
        table.add_row("contract versions to be approved", grouped_count(found.unapproved), "ledger contract list --unapproved")
    for one in found.not_fresh:
        contract = printable(one.contract)
        if one.spans:
            what, how = f"{contract}: spans to compute again", f"by ledger settle {_some_of(one.months)}; unknown models show then"
            table.add_row(what, grouped_count(one.spans), how, style=Style.YELLOW)
        else:
            how = "by the next ledger settle of their month"
            table.add_row(f"{contract}: days whose cold starts are not ranked", grouped_count(one.unranked_days), how)
    lines = list(table.lines())[1:]
    yield from lines or [(Span("  nothing"),)]


def _some_of(months: Sequence[str]) -> str:
    """The first of the months, and how many more there are."""
    more = len(months) - SHOWN_MONTHS
    return ", ".join(months[:SHOWN_MONTHS]) + (f" and {more} later month{'' if more == 1 else 's'}" if more > 0 else "")


def _why(first_id: str, account: str | None = None) -> str:
    return f"{request_command('ledger explain', first_id, account)} (the first) says why"


def _headed(words: str) -> Iterator[Line]:
    yield ()
    yield (Span(words, Style.BOLD),)


def _figure(count: int) -> str:
    return grouped_count(count) if count else ""


def _json(found: Status) -> dict[str, object]:
    return {
        "requests": found.requests,
        "unassigned": found.unassigned,
        "months": [dataclasses.asdict(one) for one in found.months],
        "conflicts": found.conflicts,
        "quarantine": found.quarantine,
        "unjoined": found.unjoined.requests,
        "unjoined_since": _instant(found.unjoined.since),
        "kept_apart": found.unjoined.kept_apart,
        "unmet": {"far": found.unjoined.unmet.far, "refused": found.unjoined.unmet.refused},
        "unrated": [dataclasses.asdict(one) for one in found.unrated],
        "unapproved": found.unapproved,
        "not_fresh": [dataclasses.asdict(one) | {"start": _instant(one.start), "end": _instant(one.end)} for one in found.not_fresh],
        "month_end": [
            dataclasses.asdict(one) | {"until": _instant(one.until), "commands": list(one.commands)} for one in found.month_end.months
        ],
        "changed_after_close": [dataclasses.asdict(one) for one in found.month_end.changed],
        "payouts": [dataclasses.asdict(one) for one in found.month_end.payouts],
        "drafts": [dataclasses.asdict(one) | {"settled_at": instant_text(one.settled_at)} for one in found.drafts],
        "loads": [dataclasses.asdict(one) | {"at": instant_text(one.at)} for one in found.loads],
    }


def _instant(instant: datetime | None) -> str | None:
    return instant_text(instant) if instant else None
