"""`ledger void` and `ledger correct`: what the provider changes of a stored request."""

import click

from ledger.cli.options import said
from ledger.cli.output import echo
from ledger.workflows.correct import correct_request
from ledger.workflows.void import void_request

_account = click.option("--account", help="Needed if several accounts have a request of this id.")
_author = click.option("--author", help="Who does this. Default: the user of the operating system.")
_reason = click.option("--reason", required=True, callback=said, help="Why; shown in the SLA report.")


@click.command(epilog="Example: ledger void req-000017 --account acme-bank --reason 'load test of ours'")
@click.argument("request_id")
@_account
@_reason
@_author
@click.pass_obj
def void(database: str | None, request_id: str, account: str | None, reason: str, author: str | None) -> None:
    """Withdraw a request. It stays stored, and counts no more."""
    done = void_request(database, request_id, account=account, reason=reason, author=author)
    echo(f"{done.account} {done.request_id}: revision {done.revision} " + ("withdrawn" if done.now else "was withdrawn before"))


@click.command(epilog="Example: ledger correct req-000017 --set output_tokens=512 --set e2e_ms=99.5 --reason 'meter fault'")
@click.argument("request_id")
@click.option("--set", "settings", multiple=True, required=True, metavar="FIELD=VALUE", help="A column and its value; empty for none.")
@_account
@_reason
@_author
@click.pass_obj
def correct(database: str | None, request_id: str, settings: tuple[str, ...], account: str | None, reason: str, author: str | None) -> None:
    """Replace what is stored of a request: the current revision is withdrawn and the next one added."""
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name in values:
            raise click.UsageError(f"--set {setting}: write FIELD=VALUE, each field once")
        values[name] = value
    done = correct_request(database, request_id, values, account=account, reason=reason, author=author)
    echo(f"{done.account} {done.request_id}: revision {done.revision} added")
    for name, (before, after) in done.changes.items():
        echo(f"  {name}: {'none' if before is None else before} -> {'none' if after is None else after}")
    if done.conflicts:
        echo(f"  settles the rows in conflict {', '.join(map(str, done.conflicts))}")
