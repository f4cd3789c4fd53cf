"""What warnings of a contract file would have meant in money: a checked file and a month in, the month either way out.

Takes an open database, writes nothing. Source: specification, section 3, "Lint"; `replay`.
"""

from dataclasses import dataclass

from ledger.contract.alternative import alternatives
from ledger.contract.diagnostic import Diagnostic
from ledger.contract.reader import diagnostic_of
from ledger.documents.replay_words import ReplayNote
from ledger.settlement.statement import Statement
from ledger.store.database import Database
from ledger.workflows.contract import CheckedFile
from ledger.workflows.replay import Candidate, replay_month, replay_notes, unended_notes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedWarning:
    """The month under the contract as it is written, and with `value` instead of what the warning is about."""

    value: str
    written: Statement
    otherwise: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedFile:
    """The warnings of a file that have another choice, and what a reader of the figures must know."""

    warnings: dict[Diagnostic, ReplayedWarning]
    notes: tuple[ReplayNote, ...]


def replay_warnings(database: Database, month: str, checked: CheckedFile) -> ReplayedFile:
    """All from one snapshot. Nothing is asked of the database for a file with errors; without such a warning it is still told that
    the month cannot be replayed.

    Raises ReplayRefused as `replay_month` does.
    """
    contract = checked.contract
    if contract is None:
        return ReplayedFile(warnings={}, notes=())
    found = alternatives(contract)
    candidate = Candidate(name=checked.file, contract=contract)
    others = [Candidate(name=f"{checked.file} with {one.value}", contract=one.contract) for one in found]
    written, *otherwise = replay_month(database, month, [candidate, *others])
    warnings = {
        diagnostic_of(one.finding, checked.file, checked.places): ReplayedWarning(value=one.value, written=written, otherwise=other)
        for one, other in zip(found, otherwise, strict=True)
    }
    notes = (*replay_notes(month, [candidate]), *unended_notes(database, [written]))
    return ReplayedFile(warnings=warnings, notes=notes)
