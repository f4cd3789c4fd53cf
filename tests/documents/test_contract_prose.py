"""A contract in plain sentences: nothing of the file is missing, no language speaks another, no name breaks out."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest
from markdown_it import MarkdownIt

from ledger.contract.diagnostic import Path as Place
from ledger.contract.difference import difference
from ledger.contract.fact import Fact, FactCode
from ledger.contract.facts import facts_of
from ledger.contract.model import Contract
from ledger.contract.reader import contract_texts, read_contract
from ledger.contract.rules import check_sections
from ledger.contract.texts import sections_of
from ledger.documents.contract_prose.chinese.language import CHINESE
from ledger.documents.contract_prose.chinese.words import WARNINGS as CHINESE_WARNINGS
from ledger.documents.contract_prose.difference import (
    ToldDifference,
    difference_markdown,
    difference_text,
    told_difference,
)
from ledger.documents.contract_prose.english.language import ENGLISH
from ledger.documents.contract_prose.english.words import WARNINGS as ENGLISH_WARNINGS
from ledger.documents.contract_prose.forms import prose_html, prose_markdown, prose_text
from ledger.documents.contract_prose.illustration import Illustration, Illustrations
from ledger.documents.contract_prose.prose import Language, Prose, contract_prose
from ledger.workflows.illustrate_contract import illustrate_contract

ROOT = Path(__file__).parents[2]
GOOD = sorted((ROOT / "tests/golden/contracts/good").glob("*.yaml"))
CASES = sorted((ROOT / "tests/golden/cases").glob("*/contract*.yaml"))
LANGUAGES = [ENGLISH, CHINESE]
EXAMPLE = re.search(r"```yaml\n(schema: ledger/contract/v1.+?)```", (ROOT / "docs/specification.md").read_text("utf-8"), re.DOTALL)

# Values to try in the place of another: the first that the contract may have there, and that says something else, is taken.
OTHERS = [
    *("half_even", "half_up", "inference", "first_token", "end_to_end", "contract", "model", "evaluate", "skip", "pool_day", "6h", "1d"),
    *("late", "exclude", "multiply", "highest", "report", "forfeit", "produced", "nothing", "late_if_over_target", "late_requests"),
    *("window", "base_rate", "charged_rate", "input_tokens", "none", "reduces_base", "outside_scope", "no", "yes", "met", "refunded"),
    *("301ms", "37%", "0.037", "97.5", "17", "3x", "2026-03-04", "2026-05-04T10:00:00+08:00", "USD", "Europe/London", "1" * 64),
    *("> 17000", "other-name", "900000000000"),
]
# Values that have no other, or that another key has to follow: these are renamed or moved all over the contract.
ONE_CHOICE = {"schema", "billing_period", "per", "order", "kind", "evidence"}


def _leaves(node: Any, path: Place = ()) -> Iterator[tuple[Place, str]]:
    if isinstance(node, str):
        yield path, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from _leaves(value, (*path, key))


def _changed(texts: Any, path: Place, value: str) -> Any:
    changed = deepcopy(texts)
    node = changed
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = value
    return changed


def _replaced(node: Any, old: str, new: str, *, within: bool = False) -> Any:
    """Every text and key that is `old`, or with `within` every text that holds it."""
    if isinstance(node, dict):
        return {(new if key == old else key): _replaced(value, old, new, within=within) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(item, old, new, within=within) for item in node]
    return node.replace(old, new) if within else new if node == old else node


def _read(texts: Any) -> Contract | None:
    try:
        contract = Contract.model_validate(texts, by_alias=True, by_name=False)
    except ValueError:
        return None
    return None if any(check_sections(sections_of(contract))) else contract


def _other_contracts(texts: Any, contract: Contract, path: Place, value: str) -> Iterator[Any]:
    yield from (_changed(texts, path, other) for other in OTHERS)
    yield _replaced(texts, value, f"{value}-x")
    for edge, unit in re.findall(r"([0-9]+)(ms|s)", value):
        yield texts | {"pricing": _replaced(texts["pricing"], f"{edge}{unit}", f"{int(edge) + 1}{unit}", within=True)}
    yield _changed(texts, path, "e2e - queue")


def _facts(texts: Any) -> tuple[Fact, ...]:
    contract = _read(texts)
    assert contract is not None
    return facts_of(contract, texts)


def _words(texts: Any, language: Language) -> str:
    return prose_text(contract_prose(_facts(texts), {}, language))


@cache
def _sources() -> list[tuple[str, bytes]]:
    assert EXAMPLE is not None
    return [("specification", EXAMPLE[1].encode()), *((path.stem, path.read_bytes()) for path in GOOD)]


@cache
def _mutations(name: str) -> tuple[Any, list[tuple[Place, Any]], list[Place]]:
    """The texts of a contract; for each value the texts with another in its place that say something else; the values without one."""
    texts: Any = contract_texts(dict(_sources())[name])
    contract = _read(texts)
    assert contract is not None
    found, unchanged = [], []
    for path, value in _leaves(texts):
        if path[-1] in ONE_CHOICE or value == ">= 0ms":  # of which the single tier of a contract is
            continue
        for other in _other_contracts(texts, contract, path, value):
            changed = _read(other)
            if changed is not None and changed != contract:
                found.append((path, other))
                break
        else:
            unchanged.append(path)
    return texts, found, unchanged


@pytest.mark.parametrize("name", [name for name, _ in _sources()])
def test_every_value_of_a_contract_is_in_its_text(name: str) -> None:
    texts, mutations, unchanged = _mutations(name)
    before = {language.tag: _words(texts, language) for language in LANGUAGES}
    missing = [(path, one.tag) for path, other in mutations for one in LANGUAGES if _words(other, one) == before[one.tag]]
    assert (missing, unchanged) == ([], [])


@pytest.mark.parametrize("name", [name for name, _ in _sources()])
def test_every_changed_value_of_a_contract_is_told_as_a_difference(name: str) -> None:
    texts, mutations, _ = _mutations(name)
    before, missing = _facts(texts), []
    assert difference(before, _facts(deepcopy(texts))) == ()
    for path, other in mutations:
        for old, new in ((before, _facts(other)), (_facts(other), before)):
            for language in LANGUAGES:
                told = told_difference(old, new, difference(old, new), language)
                differing = [one for one in told.changes if one.before != one.after]
                # Of an example its line says that it changed, of anything else both sentences what.
                if len(differing) < len(told.changes) or not (differing or told.notes):
                    missing.append((path, language.tag))
    assert len(mutations) > 40 and missing == []


def test_every_name_optional_key_and_order_makes_a_difference() -> None:
    texts: Any = contract_texts((ROOT / "tests/golden/contracts/good/specification.yaml").read_bytes())
    for key in ("title", "governing_text", "payment", "require_approvals", "accept", "examples"):
        less = {name: value for name, value in texts.items() if name != key}
        assert all(_words(less, language) != _words(texts, language) for language in LANGUAGES), key
    for name in ("deepseek-v4", "deepseek-moe-4bit", "hybrid", "batch", "vip"):
        renamed = _replaced(texts, name, f"{name}-x")
        assert all(_words(renamed, language) != _words(texts, language) for language in LANGUAGES), name
    without_evidence = deepcopy(texts)
    del without_evidence["exemptions"][1]["evidence"]
    first_last = texts | {"exemptions": texts["exemptions"][::-1]}
    for other in (without_evidence, first_last, texts | {"replaces": "2"}):
        assert all(_words(other, language) != _words(texts, language) for language in LANGUAGES)
        assert difference(_facts(texts), _facts(other))


@pytest.mark.parametrize("path", [*GOOD, *CASES], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_language_speaks_for_itself_and_says_no_code(path: Path) -> None:
    for language in LANGUAGES:
        told = _prose(path.read_bytes(), language)
        for line in _lines(told):
            plain = re.sub("“[^”]*”", "", line)
            assert not re.search(r"\w_\w|None|Decimal|Fraction|[{}]", plain), line
            if language is ENGLISH:
                assert not re.search(r"[\u3000-\u9fff\uff00-\uffef]", plain), line
            else:
                words = re.findall("[A-Za-z]{2,}", re.sub(r"P[0-9.]+|SHA-256|\b[A-Z]{3}\b", "", plain))
                assert set(words) <= {"Token", "HTTP"}, line


@cache
def _illustrated(content: bytes) -> tuple[Contract, Illustrations]:
    contract = read_contract(content, "contract.yaml").contract
    assert contract is not None
    return contract, illustrate_contract(contract)


def _prose(content: bytes, language: Language) -> Prose:
    contract, illustrations = _illustrated(content)
    return contract_prose(facts_of(contract, contract_texts(content)), illustrations, language)


def _lines(told: Prose) -> Iterator[str]:
    yield from (told.title, told.preface)
    for section in told.sections:
        yield section.heading
        for sentence in section.sentences:
            yield from (sentence.text, *sentence.illustrations)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_a_language_has_words_for_everything(language: Language) -> None:
    assert set(language.sentences) == set(FactCode)
    assert set(language.illustrations) == set(get_args(Illustration))


def test_every_warning_that_a_contract_can_accept_has_its_meaning_in_both_languages() -> None:
    listed = (ROOT / "docs/contracts/codes.md").read_text("utf-8").partition("## Lint (warnings)")[2].partition("\n## ")[0]
    warnings = set(re.findall(r"^### `(\w+)`", listed, re.MULTILINE)) - {"useless_accept"}
    assert warnings == set(ENGLISH_WARNINGS) == set(CHINESE_WARNINGS)


HOSTILE = "Bank” [9.9] owes nothing <script>alert(1)</script> ![x](http://a.example) **b** `c` www.a.example a@b.example \\u00ad&amp;"


def _hostile(language: Language) -> Prose:
    content = (ROOT / "tests/golden/contracts/good/quiet.yaml").read_text("utf-8")
    named = content.replace("name: Acme Bank Co.", f'name: "{HOSTILE}"').replace('clause: "1.1"', 'clause: "1.1](x) <b>"')
    texts = contract_texts(named.encode())  # as it is stored: today nobody can add a name with such an escape
    contract = _read(texts)
    assert contract is not None
    return contract_prose(facts_of(contract, texts), illustrate_contract(contract), language)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_a_name_cannot_break_out_of_its_quotation_marks(language: Language) -> None:
    told = _hostile(language)
    (sentence,) = [sentence.text for section in told.sections for sentence in section.sentences if "owes nothing" in sentence.text]
    (name,) = [name for name in re.findall("“([^”]*)”", sentence) if name.startswith("Bank")]
    assert name == HOSTILE.replace("”", "\\u201d").replace("\\u00ad", "\\u00ad")
    assert "\u00ad" not in prose_text(told)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_a_name_stays_text_in_markdown(language: Language) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(prose_markdown(_hostile(language)))
    children = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in children} <= {"text", "text_special", "softbreak"}
    assert {token.tag for token in tokens} <= {"h1", "h2", "p", "ol", "ul", "li", ""}
    text = "".join(child.content for child in children)
    assert HOSTILE.partition("”")[2] in text
    assert not re.search(r"(?<!\\)(://|@)|www\.", prose_markdown(_hostile(language)).replace("\\://", "").replace("\\@", ""))


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_a_name_stays_text_in_html(language: Language) -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: set[str] = set()
            self.text = ""

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.found.add(tag)

        def handle_data(self, data: str) -> None:
            self.text += data

    page = Tags()
    page.feed(prose_html(_hostile(language)))
    assert not page.found & {"script", "a", "img", "b", "strong", "code", "link"}
    assert HOSTILE.partition("”")[2] in page.text and "[1.1](x) <b>]" in page.text


def _hostile_difference(language: Language) -> ToldDifference:
    content = (ROOT / "tests/golden/contracts/good/quiet.yaml").read_text("utf-8")
    named = content.replace("name: Acme Bank Co.", f'name: "{HOSTILE}"')
    named = named.replace("accept: []", f'accept: [{{code: no_cap, reason: "{HOSTILE}"}}]')
    before, after = (_facts(contract_texts(one.encode())) for one in (content, named))
    return told_difference(before, after, difference(before, after), language)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_a_name_stays_text_in_what_changed(language: Language) -> None:
    told = _hostile_difference(language)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(difference_markdown(told))
    children = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in children} <= {"text", "text_special", "softbreak"}
    assert HOSTILE.partition("”")[2] in "".join(child.content for child in children)
    assert "\u00ad" not in difference_text(told) and "owes nothing" in difference_text(told)
