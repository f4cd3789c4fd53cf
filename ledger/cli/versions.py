"""`ledger contract list | show | history`: what is stored of contracts."""

from collections.abc import Iterator

import click

from ledger.cli.options import echo_json, format_option, pass_database
from ledger.cli.output import echo, wrapped
from ledger.cli.stored_version import effective_words, in_force_words, short_hash, show_missing, show_unproved, version_words
from ledger.instant import instant_text, second_text
from ledger.printable import printable
from ledger.store.approvals import Approval
from ledger.store.database import Database
from ledger.workflows.versions import ListedVersion, Step, contract_history, list_versions, stored_version


@click.command(name="list")
@click.option("--unapproved", is_flag=True, help="Only versions in force on some day that lack an approval: settlements wait for them.")
@format_option
@pass_database
def list_(database: Database, unapproved: bool, output_format: str) -> None:
    """List the stored versions of all contracts: when each is in force, what it covers, who added it, and which approvals are missing.

    Days are local days of the contract's zone; an end is the first day after.

    \b
    Examples:
      ledger contract list
      ledger contract list --unapproved --format json
    """
    stored = list_versions(database)
    listed = [one for one in stored if one.holds_up or not unapproved]
    if output_format == "json":
        echo_json([_version_json(one) for one in listed])
        return
    for one in listed:
        for line in _version_lines(one):
            echo(printable(line))
    if not stored:
        echo("no contracts yet; add one with: ledger contract add FILE", err=True)
    elif not listed:
        echo("no version in force lacks an approval", err=True)


@click.command()
@click.argument("contract_id", metavar="ID")
@click.argument("version", metavar="[VERSION]", required=False, type=click.IntRange(min=1))
@pass_database
def show(database: Database, contract_id: str, version: int | None) -> None:
    """Print a stored version byte for byte as it was added, without VERSION the highest; which one it is goes to standard error.

    \b
    Examples:
      ledger contract show acme-bank-llm
      ledger contract show acme-bank-llm 2 > acme-v2.yaml
    """
    stored = stored_version(database, contract_id, version)
    added = f"added {second_text(stored.added_at)} by {stored.author} from {stored.file}"
    echo(printable(f"{version_words(stored)}, {added}, sha256 {stored.content_sha256}"), err=True)
    show_unproved(stored)
    click.echo(stored.content, nl=False)


@click.command()
@click.argument("contract_id", metavar="ID")
@format_option
@pass_database
def history(database: Database, contract_id: str, output_format: str) -> None:
    """Show who added and who approved the versions of a contract, in order of time, each with the hash of the file.

    \b
    Example:
      ledger contract history acme-bank-llm
    """
    found = contract_history(database, contract_id)
    if output_format == "json":
        echo_json([_step_json(step) for step in found.steps])
        return
    for step in found.steps:
        told = f"version {step.version.contract.version} {_step_words(step)} ({short_hash(step.version)})"
        echo(f"{second_text(step.at)}  {printable(told)}")
    for one in found.holding_up:
        show_missing(one.stored, one.missing)


def _version_lines(one: ListedVersion) -> Iterator[str]:
    stored = one.stored
    customer = stored.contract.parties.customer
    yield f"{version_words(stored)}  {customer.name}  {short_hash(stored)}"
    yield f"  effective {effective_words(stored)}"
    yield f"  in force {in_force_words(one.in_force)}"
    yield from wrapped(f"accounts {', '.join(customer.accounts)}", first="  ")
    if roles := stored.contract.require_approvals:
        given = dict.fromkeys(roles, "missing") | {approval.role: f"by {approval.author}" for approval in one.approvals}
        yield from wrapped(f"approvals {', '.join(f'{role} {given[role]}' for role in roles)}", first="  ")
    yield f"  added {second_text(stored.added_at)} by {stored.author} from {stored.file}"


def _version_json(one: ListedVersion) -> dict[str, object]:
    stored, contract = one.stored, one.stored.contract
    return {
        "contract": contract.id,
        "version": contract.version,
        "sha256": stored.content_sha256,
        "customer": contract.parties.customer.name,
        "accounts": list(contract.parties.customer.accounts),
        "timezone": contract.calendar.timezone,
        "effective": _days_json(contract.effective.start, contract.effective.until),
        "in_force": [_days_json(stretch.from_on, stretch.until_on) for stretch in one.in_force],
        "replaces": contract.replaces,
        "required_approvals": list(contract.require_approvals),
        "approvals": [_approval_json(approval) for approval in one.approvals],
        "missing_approvals": list(one.missing),
        "file": stored.file,
        "added_at": instant_text(stored.added_at),
        "author": stored.author,
    }


def _days_json(start: object, until: object) -> dict[str, str | None]:
    return {"from": str(start), "until": None if until is None else str(until)}


def _approval_json(approval: Approval) -> dict[str, object]:
    return {
        "role": approval.role,
        "author": approval.author,
        "reason": approval.reason,
        "approved_at": instant_text(approval.approved_at),
    }


def _step_words(step: Step) -> str:
    if step.approval is None:
        return f"added by {step.version.author} from {step.version.file}, effective {effective_words(step.version)}"
    reason = f": {step.approval.reason}" if step.approval.reason else ""
    return f"approved for {step.approval.role} by {step.approval.author}{reason}"


def _step_json(step: Step) -> dict[str, object]:
    stored = step.version
    version = {"at": instant_text(step.at), "version": stored.contract.version, "sha256": stored.content_sha256}
    if step.approval is not None:
        return version | {"what": "approved", **_approval_json(step.approval)}
    effective = _days_json(stored.contract.effective.start, stored.contract.effective.until)
    return version | {
        "what": "added",
        "author": stored.author,
        "file": stored.file,
        "effective": effective,
        "replaces": stored.contract.replaces,
    }
