"""`ledger void` and `ledger correct`: what the provider changes of stored requests."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from ledger.cli.drafts import tell_outdated
from ledger.cli.options import author_option, echo_json, format_option, instant, pass_database, said, settings
from ledger.cli.output import echo
from ledger.ingest.file_state import standard_input
from ledger.ingest.reading.scratch_folder import scratch_folder
from ledger.instant import instant_text
from ledger.printable import brief, printable
from ledger.store.database import Database
from ledger.store.withdrawals import RequestFilter
from ledger.workflows.correct import correct_request
from ledger.workflows.void import IdFile, VoidedMany, void_many, void_request

SHOWN_GROUPS = 40
LARGEST_STATUS = 2**31 - 1  # that can be stored

_reason = click.option("--reason", metavar="TEXT", required=True, callback=said, help="Why; it is kept with the entry.")


def _status(_ctx: click.Context, _parameter: click.Parameter, number: int | None) -> int | None:
    if number is not None and abs(number) > LARGEST_STATUS:
        raise click.BadParameter("an HTTP status is a small whole number, such as 503")
    return number


@click.command()
@click.argument("request_id", required=False)
@click.option("--account", metavar="NAME", help="Requests of this account. With an id: needed if several accounts have it.")
@click.option("--ids", metavar="FILE", help="The requests of a file: an id a line, or CSV with account,request_id; - is standard input.")
@click.option("--skip-unknown", is_flag=True, help="With --ids: leave out ids that no request has.")
@click.option("--model", metavar="NAME", help="Requests of this model, as served.")
@click.option("--node", metavar="NAME", help="Requests of this node.")
@click.option("--status", type=int, callback=_status, metavar="NUMBER", help="Requests with this HTTP status.")
@click.option("--from", "start", metavar="INSTANT", callback=instant, help="Requests received at or after it: 2026-05-06T10:00:00+08:00.")
@click.option("--until", "end", metavar="INSTANT", callback=instant, help="Requests received before it.")
@click.option("--file", "source", metavar="NAME", help="Requests loaded from the file of this name, without folders.")
@click.option("--dry-run", is_flag=True, help="Only show which requests it would be.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_reason
@author_option
@format_option
@click.pass_context
@pass_database
def void(
    database: Database, ctx: click.Context, request_id: str | None, account: str | None, ids: str | None, skip_unknown: bool,
    model: str | None, node: str | None, status: int | None, start: datetime | None, end: datetime | None, source: str | None,
    dry_run: bool, yes: bool, reason: str, author: str, output_format: str,
) -> None:  # fmt: skip
    """Withdraw a request, or many. They stay stored, and count no more.

    Many are withdrawn all together or not at all, after a question on the terminal: look with --dry-run first. Requests that were withdrawn
    before are counted apart and stay as they are.

    \b
    Examples:
      ledger void req-000017 --account acme-bank --reason "load test of ours"
      ledger void --node gpu-7 --from 2026-05-06T10:00:00+08:00 --until 2026-05-06T11:00:00+08:00 --reason "wrong clock" --dry-run
      ledger void --file load-test.jsonl --reason "load test of ours" --yes
      ledger void --ids withdrawn.csv --reason "agreed with the customer"
    """
    which = RequestFilter(account=account, model=model, node=node, status=status, start=start, end=end, source=source)
    is_one, in_file = request_id is not None, ids is not None
    # An account says also whose the ids are.
    by_filter = which.names_requests if not (is_one or in_file) else replace(which, account=None).names_requests
    if is_one + in_file + by_filter != 1:
        choices = "--account, --model, --node, --status, --from, --until or --file"
        raise click.UsageError(f"name one request, or --ids FILE, or choose by {choices}")
    if skip_unknown and ids is None:
        raise click.UsageError("--skip-unknown belongs to --ids")
    if request_id is not None:
        if dry_run:
            raise click.UsageError(f"--dry-run is for many; ledger explain {brief(request_id)} shows one request")
        done = void_request(database, request_id, account=account, reason=reason, author=author)
        if output_format == "json":
            echo_json({"account": done.account, "request_id": done.request_id, "revision": done.revision, "withdrawn_before": not done.now})
        else:
            outcome = "withdrawn" if done.now else "was withdrawn before"
            echo(printable(f"{done.account} {done.request_id}: revision {done.revision} {outcome}"))
        tell_outdated(database, [done.account])
        return
    if not (dry_run or yes or _can_ask()):
        raise click.UsageError("there is no terminal to ask on: look with --dry-run, then say --yes")
    with _at_hand(ids) as path:
        chosen = which if path is None else IdFile(path=path, account=account, skip_unknown=skip_unknown)
        look = None
        if dry_run or not yes:
            look = void_many(database, chosen, reason=reason, author=author, dry_run=True)
            _show(look, output_format if dry_run else "text", dry_run=True, err=not dry_run)
        if dry_run:
            return
        if look is not None and not (look.requests and click.confirm("withdraw them?", err=True)):
            echo("nothing was withdrawn", err=True)
            ctx.exit(1 if look.requests else 0)
        withdrawn = void_many(database, chosen, reason=reason, author=author, expected=look)
    _show(withdrawn, output_format, dry_run=False)
    tell_outdated(database, {one.account for one in withdrawn.groups})


@click.command()
@click.argument("request_id")
@click.option(
    "--set",
    "values",
    multiple=True,
    required=True,
    metavar="FIELD=VALUE",
    callback=settings,
    help="A column and its value; empty for none.",
)
@click.option("--revive", is_flag=True, help="Also a request that was withdrawn: it counts again.")
@click.option("--account", metavar="NAME", help="Needed if several accounts have a request of this id.")
@_reason
@author_option
@format_option
@pass_database
def correct(
    database: Database, request_id: str, values: dict[str, str], revive: bool, account: str | None, reason: str, author: str,
    output_format: str,
) -> None:  # fmt: skip
    """Replace what is stored of a request: the current revision is withdrawn and the next one added.

    --set replaces columns of the event (those of the specification's section 2), but not the account and the request's id.

    \b
    Examples:
      ledger correct req-000017 --set output_tokens=512 --set e2e_ms=99.5 --reason "meter fault"
      ledger correct req-000017 --account acme-bank --revive --set output_tokens=10 --reason "was the customer's after all"
    """
    done = correct_request(database, request_id, values, account=account, reason=reason, author=author, revive=revive)
    if output_format == "json":
        echo_json(
            {
                "account": done.account,
                "request_id": done.request_id,
                "revision": done.revision,
                "revived": done.revived,
                "changes": {name: {"before": _value(before), "after": _value(after)} for name, (before, after) in done.changes.items()},
                "settled_conflicts": list(done.conflicts),
            }
        )
    else:
        echo(printable(f"{done.account} {done.request_id}: revision {done.revision} added"))
        if done.revived:
            echo("  it was withdrawn, and counts again")
        for name, (before, after) in done.changes.items():
            echo(printable(f"  {name}: {'none' if before is None else before} -> {'none' if after is None else after}"))
        if done.conflicts:
            echo(f"  settles the rows in conflict {', '.join(map(str, done.conflicts))}")
    tell_outdated(database, [done.account])


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _at_hand(ids: str | None) -> Iterator[Path | None]:
    """The file of ids, to be read more than once: what comes in a stream is put into a temporary file first."""
    if ids is None or (ids != "-" and not Path(ids).is_fifo()):
        yield None if ids is None else Path(ids)
        return
    with scratch_folder("ledger-ids-") as folder:
        copy = Path(folder, "stdin")
        with copy.open("wb") as spooled, standard_input() if ids == "-" else open(ids, "rb") as stream:
            shutil.copyfileobj(stream, spooled)
        yield copy


def _show(done: VoidedMany, output_format: str, *, dry_run: bool, err: bool = False) -> None:
    if output_format == "json":
        echo_json(
            {
                "dry_run": dry_run,
                "requests": done.requests,
                "withdrawn_before": done.withdrawn_before,
                "unknown": done.unknown,
                "groups": [
                    {"account": one.account, "model": one.model, "day": one.day.isoformat(), "requests": one.requests,
                     "input_tokens": one.input_tokens, "output_tokens": one.output_tokens}
                    for one in done.groups
                ],
                "sample": [{"account": account, "request_id": one, "received_at": instant_text(at)} for account, one, at in done.sample],
            }
        )  # fmt: skip
        return
    for group in done.groups[:SHOWN_GROUPS]:
        tokens = f"{group.input_tokens:,} input and {group.output_tokens:,} output tokens"
        echo(printable(f"{group.account} {group.model} {group.day}: {_requests(group.requests)}, {tokens}"), err=err)
    if len(done.groups) > SHOWN_GROUPS:
        echo(f"and {len(done.groups) - SHOWN_GROUPS:,} more days of accounts and models: --format json has them", err=err)
    if dry_run:
        for account, request_id, at in done.sample:
            echo(printable(f"  such as {account} {request_id} of {instant_text(at)}"), err=err)
    echo(f"{_requests(done.requests)} {'would be withdrawn' if dry_run else 'withdrawn'}", err=err)
    if done.withdrawn_before:
        echo(f"{_requests(done.withdrawn_before)} withdrawn before", err=err)
    if done.unknown:
        echo(f"{done.unknown:,} unknown", err=err)


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count:,} requests"


def _value(value: object) -> object:
    return instant_text(value) if isinstance(value, datetime) else value
