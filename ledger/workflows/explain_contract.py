"""A contract file in plain sentences with worked numbers: path in, `Prose` or every error of the file out, without a database.

Source: specification, section 9 (`ledger contract explain`).
"""

from dataclasses import dataclass
from pathlib import Path

from ledger.contract.facts import facts_of
from ledger.contract.reader import contract_texts
from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.documents.contract_prose.prose import Prose, contract_prose
from ledger.workflows.contract import CheckedFile, check_contracts
from ledger.workflows.illustrate_contract import illustrate_contract


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedFile:
    """The file as it was checked, and its contract in words; None if the file has errors."""

    checked: CheckedFile
    prose: Prose | None


def explain_contract(path: Path, language: str) -> ExplainedFile:
    """The contract of the file in one of LANGUAGES."""
    (checked,) = check_contracts([path])
    if checked.contract is None:
        return ExplainedFile(checked=checked, prose=None)
    facts = facts_of(checked.contract, contract_texts(checked.content))
    return ExplainedFile(checked=checked, prose=contract_prose(facts, illustrate_contract(checked.contract), LANGUAGES[language]))
