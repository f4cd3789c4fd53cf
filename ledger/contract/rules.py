"""What must hold within one version of a contract. Not complete yet."""

from collections.abc import Iterator, Mapping
from typing import Any

from ledger.contract.diagnostic import Finding


def check_sections(sections: Mapping[str, Any]) -> Iterator[Finding]:
    """The rules that the given sections break."""
    return iter(())
