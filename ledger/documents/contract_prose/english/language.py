"""English, put together."""

from ledger.contract.fact import FactCode, Facts
from ledger.documents.contract_prose.english import agreement, rules
from ledger.documents.contract_prose.english.difference import DIFFERENCE
from ledger.documents.contract_prose.english.numbers import ILLUSTRATIONS
from ledger.documents.contract_prose.english.words import HEADINGS, PREFACE
from ledger.documents.contract_prose.figures import quoted
from ledger.documents.contract_prose.prose import Language


def _title(facts: Facts) -> str:
    return f"Contract {quoted(facts.of(FactCode.ID)['id'])}, version {facts.of(FactCode.VERSION)['version']}, in plain words"


ENGLISH = Language(
    tag="en",
    title=_title,
    preface=PREFACE,
    headings=HEADINGS,
    sentences={**agreement.SENTENCES, **rules.SENTENCES},
    illustrations=ILLUSTRATIONS,
    difference=DIFFERENCE,
)
