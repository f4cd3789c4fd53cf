"""`ledger void` and `ledger correct`: what the provider changes of a stored request."""

import click

from ledger.cli.options import author_option, pass_database, said
from ledger.cli.output import echo
from ledger.store.database import Database
from ledger.workflows.correct import correct_request
from ledger.workflows.void import void_request

_account = click.option("--account", metavar="NAME", help="Needed if several accounts have a request of this id.")
_reason = click.option("--reason", metavar="TEXT", required=True, callback=said, help="Why; it is kept with the entry.")


def _values(ctx: click.Context, param: click.Parameter, settings: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name in values:
            raise click.BadParameter(f"{setting!r}: write FIELD=VALUE, each field once", ctx, param)
        values[name] = value
    return values


@click.command(epilog="Example: ledger void req-000017 --account acme-bank --reason 'load test of ours'")
@click.argument("request_id")
@_account
@_reason
@author_option
@pass_database
def void(database: Database, request_id: str, account: str | None, reason: str, author: str) -> None:
    """Withdraw a request. It stays stored, and counts no more."""
    done = void_request(database, request_id, account=account, reason=reason, author=author)
    echo(f"{done.account} {done.request_id}: revision {done.revision} " + ("withdrawn" if done.now else "was withdrawn before"))


@click.command(epilog="Example: ledger correct req-000017 --set output_tokens=512 --set e2e_ms=99.5 --reason 'meter fault'")
@click.argument("request_id")
@click.option(
    "--set", "values", multiple=True, required=True, metavar="FIELD=VALUE", callback=_values, help="A column and its value; empty for none."
)
@_account
@_reason
@author_option
@pass_database
def correct(database: Database, request_id: str, values: dict[str, str], account: str | None, reason: str, author: str) -> None:
    """Replace what is stored of a request: the current revision is withdrawn and the next one added."""
    done = correct_request(database, request_id, values, account=account, reason=reason, author=author)
    echo(f"{done.account} {done.request_id}: revision {done.revision} added")
    for name, (before, after) in done.changes.items():
        echo(f"  {name}: {'none' if before is None else before} -> {'none' if after is None else after}")
    if done.conflicts:
        echo(f"  settles the rows in conflict {', '.join(map(str, done.conflicts))}")
