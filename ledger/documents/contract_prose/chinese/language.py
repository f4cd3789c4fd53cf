"""Chinese, put together."""

from ledger.contract.fact import FactCode, Facts
from ledger.documents.contract_prose.chinese import agreement, rules
from ledger.documents.contract_prose.chinese.difference import DIFFERENCE
from ledger.documents.contract_prose.chinese.numbers import ILLUSTRATIONS
from ledger.documents.contract_prose.chinese.words import HEADINGS, PREFACE
from ledger.documents.contract_prose.figures import quoted
from ledger.documents.contract_prose.prose import Language


def _title(facts: Facts) -> str:
    return f"合同 {quoted(facts.of(FactCode.ID)['id'])} 第 {facts.of(FactCode.VERSION)['version']} 版：条款释义"


CHINESE = Language(
    tag="zh-CN",
    title=_title,
    preface=PREFACE,
    headings=HEADINGS,
    sentences={**agreement.SENTENCES, **rules.SENTENCES},
    illustrations=ILLUSTRATIONS,
    difference=DIFFERENCE,
)
