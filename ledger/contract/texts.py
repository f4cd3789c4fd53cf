"""A contract from the texts that its file says, as they are kept beside the file: what needs neither the reader of files nor YAML.

Takes keys, lists and texts, gives the `Contract`. Source: specification, section 3; decision record contract-reader.
"""

from typing import Any

from ledger.contract.model import Contract


def contract_of_texts(texts: object) -> Contract:
    """The contract that `read_contract` gave for the file that says this.

    The types of its values are proved anew; rules say what may be added, and one that was added means what it did by those of its day.
    """
    return Contract.model_validate(texts, by_alias=True, by_name=False)


def sections_of(contract: Contract) -> dict[str, Any]:
    """The parts at the top of the contract, by name: what rules look at."""
    return {name: getattr(contract, name) for name in Contract.model_fields}
