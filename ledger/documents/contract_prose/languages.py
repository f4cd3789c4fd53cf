"""The languages in which contracts are said, by the tag of `--language`."""

from collections.abc import Mapping

from ledger.documents.contract_prose.chinese.language import CHINESE
from ledger.documents.contract_prose.english.language import ENGLISH
from ledger.documents.contract_prose.prose import Language

LANGUAGES: Mapping[str, Language] = {"en": ENGLISH, "zh": CHINESE}
