"""A contract from the texts that its file says, as they are kept beside the file: what needs neither the reader of files nor YAML.

Takes keys, lists and texts, gives the `Contract`. Source: specification, section 3; decision record contract-reader.
"""

from typing import Any

from ledger.contract.model import Contract
from ledger.contract.rules import check_sections


def contract_of_texts(texts: object) -> Contract:
    """The contract that `read_contract` gives for the file that says this; types and rules are proved anew."""
    contract = Contract.model_validate(texts, by_alias=True, by_name=False)
    assert not any(check_sections(sections_of(contract))), "the contract is sound"
    return contract


def sections_of(contract: Contract) -> dict[str, Any]:
    """The parts at the top of the contract, by name: what rules look at."""
    return {name: getattr(contract, name) for name in Contract.model_fields}
