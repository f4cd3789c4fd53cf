"""Chinese: how it is said what changed between two contracts."""

from ledger.contract.fact import FactCode, Facts
from ledger.documents.contract_prose.figures import quoted
from ledger.documents.contract_prose.prose import DifferenceWords


def _title(before: Facts, after: Facts) -> str:
    old, new = (facts.of(FactCode.ID)["id"] for facts in (before, after))
    first, second = (facts.of(FactCode.VERSION)["version"] for facts in (before, after))
    if old == new:
        return f"合同 {quoted(new)}：自第 {first} 版至第 {second} 版的含义变更"
    return f"自合同 {quoted(old)} 第 {first} 版至合同 {quoted(new)} 第 {second} 版的含义变更"


DIFFERENCE = DifferenceWords(
    title=_title,
    none="含义没有变更。",
    kinds={"added": "新增", "removed": "删除", "changed": "变更"},
    colon="：",
    before="变更前：",
    after="变更后：",
    notes={
        FactCode.ACCEPTED: lambda kind, name: f"{kind}：已确认的提示{name}。",
        FactCode.EXAMPLE: lambda kind, name: f"{kind}：示例{name}。",
    },
)
