"""`ledger verify`: what is kept is what the events give, and what was issued is what was sealed."""

from collections.abc import Sequence

import click

from ledger.cli.options import echo_json, format_option, month_argument, pass_database
from ledger.cli.output import echo
from ledger.documents.disagreement import Disagreement
from ledger.store.database import Database
from ledger.workflows.verify_cells import VerifiedCells, verify_cells
from ledger.workflows.verify_chain import VerifiedChains, verify_chains
from ledger.workflows.verify_closing import VerifiedClosing, verify_period

SHOWN = 20


@click.command()
@month_argument(required=False)
@click.option("--contract", "contract_id", metavar="ID", help="Of a month, only the document of this contract.")
@click.option("--chain", is_flag=True, help="Follow the seals of all that was issued, and compare it with what was sealed.")
@click.option("--provider", "tax_id", metavar="TAX_ID", help="With --chain: only the chain of this provider.")
@click.option("--cells", is_flag=True, help="Compare the kept cells, from which months are settled, with the requests.")
@format_option
@click.pass_context
@pass_database
def verify(
    database: Database,
    ctx: click.Context,
    period: str | None,
    contract_id: str | None,
    chain: bool,
    tax_id: str | None,
    cells: bool,
    output_format: str,
) -> None:
    """Compute again what is kept or was issued, and compare. Changes nothing; loads may run beside it.

    MONTH settles each document of a closed month again, from the requests, intervals and contract versions that its close saw, whatever
    came since, and compares every line, window, total and posting. It reads every request of the month, and those of earlier months that
    it adjusts.

    --chain reads all issued documents of each provider in order: positions, numbers without a gap, seals, and that lines, journal, files
    and totals are those that were sealed.

    Settlements read cells: sums over the requests of a contract's day, kept up while telemetry is loaded. --cells adds up the requests
    again, of a month or all, and names the contracts and days whose cells are not that. Days whose requests were changed since are computed
    again before they are used: they are counted, not compared.

    The exit code is 5 if something differs: settle nothing until it is known why.

    \b
    Examples:
      ledger verify 2026-05
      ledger verify 2026-05 --contract acme-bank-llm --format json
      ledger verify --chain
      ledger verify --cells 2026-05
    """
    _refuse_mixed(period, contract_id, chain, tax_id, cells)
    as_json = output_format == "json"
    if cells:
        verified = verify_cells(database, period)
        _show_cells(verified, period, as_json=as_json)
        differs, what = bool(verified.differing or verified.accounts), "what is kept is not what the requests give"
    elif chain:
        chains = verify_chains(database, tax_id)
        _show_chains(chains, as_json=as_json)
        differs, what = bool(chains.strays or any(one.found for one in chains.chains)), "what is kept is not what was issued"
    else:
        assert period is not None
        closings = verify_period(database, period, contract_id)
        _show_closings(closings, as_json=as_json)
        differs, what = any(one.found for one in closings), "what was issued is not what the requests give"
    if differs:
        echo(f"error: {what}\n  settle nothing until it is known why, and report it", err=True)
        ctx.exit(5)


def _refuse_mixed(period: str | None, contract_id: str | None, chain: bool, tax_id: str | None, cells: bool) -> None:
    if not (period or chain or cells):
        raise click.UsageError("say what to verify: a MONTH, --chain or --cells")
    if chain and (period or cells):
        raise click.UsageError("--chain is about all that was issued: give no month and no --cells beside it")
    if tax_id is not None and not chain:
        raise click.UsageError("--provider goes with --chain")
    if contract_id is not None and (chain or cells):
        raise click.UsageError("--contract goes with a MONTH alone")


def _show_closings(closings: list[VerifiedClosing], *, as_json: bool) -> None:
    if as_json:
        echo_json(
            [
                {
                    "period": one.period,
                    "contract": one.contract_id,
                    "number": one.number_text,
                    "lines": one.lines,
                    "differences": [_as_json(found) for found in one.found],
                }
                for one in closings
            ]
        )
        return
    for one in closings:
        name = f"{one.period} {one.contract_id} {one.number_text}"
        if not one.found:
            echo(f"{name}: 1 line agrees" if one.lines == 1 else f"{name}: {one.lines:,} lines agree")
        _show_some([f"{name}: {found.words}" for found in one.found])


def _show_chains(verified: VerifiedChains, *, as_json: bool) -> None:
    if as_json:
        chains = [
            {
                "provider": one.tax_id,
                "documents": one.documents,
                "differences": [{"number": found.number_text} | _as_json(found.disagreement) for found in one.found],
            }
            for one in verified.chains
        ]
        echo_json({"chains": chains, "strays": list(verified.strays)})
        return
    if not verified.chains:
        echo("nothing to follow: no document was issued")
    for one in verified.chains:
        if not one.found:
            echo(f"{one.tax_id}: 1 document agrees" if one.documents == 1 else f"{one.tax_id}: {one.documents:,} documents agree")
        named = [(f"{one.tax_id} {found.number_text}" if found.number_text else one.tax_id, found.disagreement) for found in one.found]
        _show_some([f"{name}: {found.words}" for name, found in named])
    _show_some(verified.strays)


def _as_json(found: Disagreement) -> dict[str, str | None]:
    return {"place": found.place, "kept": found.kept, "given": found.given, "by": found.source.value}


def _show_some(lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        echo(line)
    if len(lines) > SHOWN:
        echo(f"and {len(lines) - SHOWN:,} more: --format json lists them")


def _show_cells(verified: VerifiedCells, period: str | None, *, as_json: bool) -> None:
    if as_json:
        differing = [{"contract": contract_id, "day": day.isoformat()} for contract_id, day in verified.differing]
        echo_json({"agree": verified.agree, "stale": verified.stale, "differing": differing, "accounts": list(verified.accounts)})
        return
    one, several = "1 day of a contract agrees with its requests", "{:,} days of contracts agree with their requests"
    if verified.agree:
        echo(one if verified.agree == 1 else several.format(verified.agree))
    elif not verified.stale and not verified.differing:
        echo(f"nothing to compare: no cells are kept{f' of {period}' if period else ''}; requests that a contract covers have some")
    if verified.stale:
        were = "1 day was" if verified.stale == 1 else f"{verified.stale:,} days were"
        echo(f"{were} changed since and not compared; what was changed is computed again before it is used")
    for contract_id, day in verified.differing[:SHOWN]:
        echo(f"differs: {contract_id} on {day}")
    for account in verified.accounts[:SHOWN]:
        echo(f"differs: the number of requests of account {account}")
    more = max(len(verified.differing) - SHOWN, 0) + max(len(verified.accounts) - SHOWN, 0)
    if more:
        echo(f"and {more:,} more: --format json lists them")
