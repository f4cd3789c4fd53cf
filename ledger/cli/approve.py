"""`ledger contract approve`: a role's approval of a contract version."""

import click

from ledger.cli.options import author_option, echo_json, format_option, pass_database, said
from ledger.cli.output import echo
from ledger.cli.stored_version import short_hash, show_missing, show_unproved, version_words
from ledger.cli.which_database import show_database
from ledger.contract.scalar import parse_sha256
from ledger.instant import instant_text, second_text
from ledger.printable import printable
from ledger.store.database import Database
from ledger.workflows.approve import Approved, approve_version


def _sha256(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else parse_sha256(value)
    except ValueError as error:
        raise click.BadParameter("expected 64 hexadecimal digits, as `sha256sum FILE` prints them", ctx, param) from error


def _said_if_given(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else said(ctx, param, value)


@click.command()
@click.argument("contract_id", metavar="ID")
@click.argument("version", type=click.IntRange(min=1))
@click.option("--role", metavar="ROLE", required=True, help="In which role: one of those that the version's require_approvals lists.")
@click.option(
    "--sha256",
    "content_sha256",
    metavar="HASH",
    callback=_sha256,
    help="The SHA-256 of the file that was read: refused if another is stored.",
)
@click.option("--reason", metavar="TEXT", callback=_said_if_given, help="On what ground; it is kept with the approval.")
@author_option
@format_option
@pass_database
def approve(
    database: Database,
    contract_id: str,
    version: int,
    role: str,
    content_sha256: str | None,
    reason: str | None,
    author: str,
    output_format: str,
) -> None:
    """Approve a contract version in a role: it is settled when each role that it requires has approved it.

    An approval is of the very file that is stored, and is never changed or taken back: what should not be settled is replaced by
    another version. Approving twice does nothing.

    \b
    Examples:
      ledger contract approve acme-bank-llm 3 --role legal
      ledger contract approve acme-bank-llm 3 --role finance --author "Li Na" --reason "as signed on 2 May" --sha256 HASH
    """
    done = approve_version(database, contract_id, version, role=role, author=author, reason=reason, content_sha256=content_sha256)
    if output_format == "json":
        echo_json(_json(done))
        return
    name = f"{version_words(done.version)} ({short_hash(done.version)})"
    if done.is_new:
        echo(f"approved {name} for {role}")
    else:
        by = f"by {printable(done.approval.author)} at {second_text(done.approval.approved_at)}"
        echo(f"already approved for {role} {by}, nothing changed: {name}")
    if not database.is_made:  # which was told then
        show_database(database)
    show_unproved(done.version)
    if done.is_new and done.other_roles:
        who, roles = printable(done.approval.author), ", ".join(done.other_roles)
        echo(f"note: {who} has approved it for {roles} too: one person in several roles", err=True)
    if not done.missing:
        echo(f"{version_words(done.version)} has every approval that it needs", err=True)
    show_missing(done.version, done.missing)


def _json(done: Approved) -> dict[str, object]:
    return {
        "contract": done.version.contract.id,
        "version": done.version.contract.version,
        "sha256": done.approval.content_sha256,
        "role": done.approval.role,
        "author": done.approval.author,
        "reason": done.approval.reason,
        "approved_at": instant_text(done.approval.approved_at),
        "new": done.is_new,
        "missing": list(done.missing),
    }
