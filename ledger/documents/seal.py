"""What a seal covers: the bytes whose SHA-256 chains a document to the one before it.

Takes what a document says, gives canonical bytes. Source: specification, section 8, "Reproducible".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.documents.settlement_json import canonical_bytes


def sealed_bytes(
    *,
    previous_seal: str | None,
    tax_id: str,
    number: str,
    settlement: Mapping[str, Any],
    journal: Sequence[Mapping[str, str]],
    contract_hashes: Mapping[int, str],
) -> bytes:
    """The bytes that are sealed; the first document of a provider has no previous seal."""
    return canonical_bytes(
        {
            "previous_seal": previous_seal,
            "tax_id": tax_id,
            "number": number,
            "settlement": settlement,
            "journal": journal,
            "contract_hashes": {str(version): digest for version, digest in contract_hashes.items()},
        }
    )
