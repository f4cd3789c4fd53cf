"""How a random month is settled by ledger itself, for the property that ledger and the oracle agree."""

from typing import Any


def settle_product(contract_texts: list[str], events: list[dict[str, str]], intervals: list[dict[str, str]], period: str) -> dict[str, Any]:
    """The settlement as `ledger settle --format json` gives it, of a database that holds these contracts, events and intervals alone."""
    raise NotImplementedError
