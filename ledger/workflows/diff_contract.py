"""Two contract files compared by meaning: paths in, what changed in words or every error of the files out, without a database.

Each file is checked by itself: that both may have the same version number, or not fit together as versions, is no error here.
Source: specification, section 9 (`ledger contract diff`).
"""

from dataclasses import dataclass
from pathlib import Path

from ledger.contract.difference import difference
from ledger.contract.facts import facts_of
from ledger.contract.reader import contract_texts
from ledger.documents.contract_prose.difference import ToldDifference, told_difference
from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.workflows.contract import CheckedFile, check_contracts


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFiles:
    """Both files as they were checked, and what changed from one to the other; None if one has errors."""

    old: CheckedFile
    new: CheckedFile
    told: ToldDifference | None


def diff_contracts(old: Path, new: Path, language: str) -> ComparedFiles:
    """What changed in meaning, in one of LANGUAGES."""
    (before,), (after,) = check_contracts([old]), check_contracts([new])
    if before.contract is None or after.contract is None:
        return ComparedFiles(old=before, new=after, told=None)
    facts, others = (facts_of(one.contract, contract_texts(one.content)) for one in (before, after) if one.contract)
    told = told_difference(facts, others, difference(facts, others), LANGUAGES[language])
    return ComparedFiles(old=before, new=after, told=told)
