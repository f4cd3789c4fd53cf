"""`ledger explain`: why a request is what it is, and a line of an invoice."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click

from ledger.cli.explained_line import line_json, line_lines, month_json, month_table, month_title
from ledger.cli.kept_apart import apart_json, apart_lines, unmet_json, unmet_lines
from ledger.cli.options import echo_json, format_option, pass_database
from ledger.cli.output import echo, wrapped
from ledger.cli.output_file import check_output, force_option
from ledger.cli.refused_row import row_json
from ledger.cli.request_money import money_json, money_lines
from ledger.documents.text_table import write_lines
from ledger.errors import LedgerError
from ledger.ingest.event_rules import Reason
from ledger.instant import instant_text
from ledger.printable import printable
from ledger.store.database import Database
from ledger.store.histories import Load, StoredObservation, StoredRevision, Withdrawal
from ledger.workflows.explain import RequestHistory, explain_request
from ledger.workflows.explain_line import Place, explain_line, explain_month, meant_place
from ledger.workflows.explain_money import NotPriced, RequestMoney, explain_money
from ledger.workflows.named_request import LINK_WORDS

_WORDS = {"void": "withdrawn", "correct": "withdrawn for a correction", "join": "withdrawn, because its other half came"}
_TELLING = ("clock_clamped", "async_header")  # said only if it is so


@click.command()
@click.argument("request_id", metavar="REQUEST_ID | INVOICE[/LINE] | CONTRACT/MONTH[/LINE]")
@click.option("--account", metavar="NAME", help="Needed if several accounts have a request of this id.")
@click.option(
    "--export", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the requests of a line into this CSV."
)
@force_option
@format_option
@pass_database
def explain(database: Database, request_id: str, account: str | None, export: Path | None, force: bool, output_format: str) -> None:
    """Show all that has happened to a request, and what it costs why.

    First its revisions and who made them, the halves that it was formed of, its refused rows. Then each rule of the contract with its
    clause and what it looked at, the window that counts the request and what became of it, and the lines on which its tokens are, with
    exact amounts.

    Of an invoice, or the month of a contract, the lines are shown; of one line its sum, its rule, and that its requests come to it exactly.
    --export writes these: the tokens and the amounts of the last two columns sum to the line. Of a closed month they are those that the
    close saw.

    A request of halves is also found by the id of one of their rows, its call id, its trace, or the header that the client sent.

    \b
    Examples:
      ledger explain req-000017
      ledger explain 4bf92f3577b34da6a3ce929d0e0e4736
      ledger explain req-000017 --account acme-bank --format json
      ledger explain INV-2026-000001/3 --export requests.csv
      ledger explain acme-bank-llm/2026-05
    """
    place = meant_place(database, request_id) if account is None else None
    if place is not None:
        _explain_place(database, place, export, force=force, output_format=output_format)
        return
    if export is not None:
        raise LedgerError(f"{request_id} is no line of an invoice", cure="--export needs one: ledger explain INVOICE/LINE", exit_code=2)
    history = explain_request(database, request_id, account=account)
    money = _money(database, history)
    if output_format == "json":
        told = {"reason": str(money)} if isinstance(money, NotPriced) else money and money_json(money)
        echo_json(_history_json(history) | {"money": told})
        return
    for line in _history_lines(history, request_id):
        echo(printable(line))
    if isinstance(money, NotPriced):
        echo(printable(f"not billed now: {money}"))
    elif money is not None:
        for line in money_lines(money):
            echo(printable(line))


def _explain_place(database: Database, place: Place, export: Path | None, *, force: bool, output_format: str) -> None:
    """Show the lines of a month, or one of them."""
    if place.position is None:
        if export is not None:
            cure = f"add its place: {place.contract_id}/{place.period}/1"
            raise LedgerError("the requests of one line can be exported", cure=cure, exit_code=2)
        month = explain_month(database, place.contract_id, place.period)
        if output_format == "json":
            echo_json(month_json(month))
        else:
            echo(printable(month_title(month)))
            write_lines(month_table(month).lines(), sys.stdout)
        return
    check_output(export, force=force)
    line = explain_line(database, place.contract_id, place.period, place.position, export)
    if output_format == "json":
        echo_json(line_json(line))
    else:
        for text in line_lines(line):
            echo(printable(text))
    if export is not None:
        echo(f"{line.requests or 0:,} requests in {export}", err=True)


def _money(database: Database, history: RequestHistory) -> RequestMoney | NotPriced | None:
    """What a contract makes of the request, or why none does; None if it does not stand."""
    if history.stands is None:
        return None
    try:
        return explain_money(database, history.stands.fields, history.stands.load.batch_id)
    except NotPriced as reason:
        return reason


def _history_lines(history: RequestHistory, asked_id: str) -> Iterator[str]:
    name = f"{history.account} {history.request_id}".strip()
    if not history.revisions:
        yield f"{name} is no request yet"
    elif history.stands:
        yield f"{name} counts, in revision {history.stands.revision}"
    else:
        yield f"{name} is withdrawn and counts no more"
    if history.found_by or history.found_as != asked_id:
        by = LINK_WORDS[history.found_by] if history.found_by else "its id"
        without = "" if history.found_as == asked_id else f", which is {asked_id} without the prefix of an engine"
        yield f"found by {by} {history.found_as}{without}"
    before: StoredRevision | None = None
    for revision in history.revisions:
        yield f"revision {revision.revision}: {_load_words(revision.load)}"
        for field, value in revision.fields.items():
            if before is None and field not in ("account", "request_id") and _is_told(field, value):
                yield f"  {field}: {_words(value)}"
            elif before is not None and value != before.fields[field]:
                yield f"  {field}: {_words(before.fields[field])} -> {_words(value)}"
        if revision.withdrawal:
            yield f"  {_withdrawal_words(revision.withdrawal)}"
        before = revision
    if history.observations:
        yield "formed of" if history.revisions else "known of it"
    for observation in history.observations:
        of = "" if observation.record_id == observation.request_id else f" of {observation.request_id}"
        yield f"  {observation.role}'s row {observation.record_id}{of}"
        yield f"    {_load_words(observation.load, observation.line)}{', repaired' if observation.repaired else ''}"
        links = [f"{name}={value}" for name, value in (("trace", observation.trace), ("header", observation.header)) if value is not None]
        told = [*links, *(f"{name}={_words(value)}" for name, value in observation.fields.items() if _is_told(name, value))]
        yield from wrapped(", ".join(told))
    waiting = next((row.quarantine_id for row in history.refused if row.resolution is None and row.reason != Reason.CONFLICT), None)
    if history.apart:
        yield from apart_lines(history.apart, waiting_id=waiting)
    if history.unmet:
        yield from unmet_lines(history.unmet, waiting_id=waiting)
    if history.refused:
        yield "in quarantine"
    for row in history.refused:
        done = f"{row.resolution} by {row.resolved_by}: {row.resolution_reason}" if row.resolution else "waits for somebody"
        yield f"  {row.quarantine_id} {row.reason} ({row.detail}), line {row.line} of {row.source}"
        yield f"    {done}"


def _is_told(name: str, value: object) -> bool:
    return value is not None and (value is not False or name not in _TELLING)


def _load_words(load: Load, line: int | None = None) -> str:
    place = "a line" if line is None else f"line {line}"
    made = "corrected" if load.mapping == load.source == "correct" else f"{place} of {load.source} under the mapping {load.mapping}"
    return f"{made}, by {load.author} at {instant_text(load.loaded_at)} (load {load.batch_id})"


def _withdrawal_words(withdrawal: Withdrawal) -> str:
    words = _WORDS[withdrawal.kind] + ("" if withdrawal.kind == "join" else f" ({withdrawal.reason})")
    return f"{words}, by {withdrawal.author} at {instant_text(withdrawal.at)}"


def _words(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case datetime():
            return instant_text(value)
        case _:
            return str(value)


def _history_json(history: RequestHistory) -> dict[str, object]:
    return {
        "account": history.account or None,
        "request_id": history.request_id,
        "found_by": history.found_by,
        "found_as": history.found_as,
        "counts": history.stands is not None,
        "revisions": [
            {
                "revision": one.revision,
                "load": _load_json(one.load),
                "withdrawn": None
                if one.withdrawal is None
                else {
                    "kind": one.withdrawal.kind,
                    "reason": one.withdrawal.reason,
                    "author": one.withdrawal.author,
                    "at": instant_text(one.withdrawal.at),
                },
                "fields": _fields_json(one.fields),
            }
            for one in history.revisions
        ],
        "halves": [_observation_json(one) for one in history.observations],
        "kept_apart": apart_json(history.apart),
        "unmet": unmet_json(history.unmet),
        "quarantine": [row_json(one) for one in history.refused],
    }


def _observation_json(observation: StoredObservation) -> dict[str, object]:
    names = ("role", "account", "record_id", "request_id", "trace", "header", "repaired")
    shown = {name: getattr(observation, name) for name in names}
    return shown | {"load": _load_json(observation.load), "fields": _fields_json(observation.fields)}


def _load_json(load: Load) -> dict[str, object]:
    return {
        "id": load.batch_id,
        "file": load.source,
        "mapping": load.mapping,
        "author": load.author,
        "at": instant_text(load.loaded_at),
    }


def _fields_json(fields: dict[str, object]) -> dict[str, object]:
    return {name: instant_text(value) if isinstance(value, datetime) else value for name, value in fields.items()}
