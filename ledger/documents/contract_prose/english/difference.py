"""English: how it is said what changed between two contracts."""

from ledger.contract.fact import FactCode, Facts
from ledger.documents.contract_prose.figures import quoted
from ledger.documents.contract_prose.prose import DifferenceWords


def _title(before: Facts, after: Facts) -> str:
    old, new = (facts.of(FactCode.ID)["id"] for facts in (before, after))
    first, second = (facts.of(FactCode.VERSION)["version"] for facts in (before, after))
    if old == new:
        return f"Contract {quoted(new)}: what changes in meaning from version {first} to version {second}"
    return f"What changes in meaning from contract {quoted(old)}, version {first}, to contract {quoted(new)}, version {second}"


DIFFERENCE = DifferenceWords(
    title=_title,
    none="There is no change in meaning.",
    kinds={"added": "Added", "removed": "Removed", "changed": "Changed"},
    colon=": ",
    before="before: ",
    after="after:  ",
    notes={
        FactCode.ACCEPTED: lambda kind, name: f"{kind}: the accepted warning {name}.",
        FactCode.EXAMPLE: lambda kind, name: f"{kind}: the example {name}.",
    },
)
