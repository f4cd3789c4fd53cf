"""The templates of contracts are sound, whole and the same in both languages; new contracts hold what was given, and their examples."""

from pathlib import Path
from typing import Any

import pytest

from ledger.contract.diagnostic import Refusal
from ledger.contract.reader import contract_texts
from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.errors import LedgerError
from ledger.workflows.contract import CheckedFile, check_contracts
from ledger.workflows.contract_examples import run_examples
from ledger.workflows.explain_contract import explain_contract
from ledger.workflows.new_contract import FIELDS, KINDS, new_contract, parse_value

TEMPLATES = Path(__file__).parents[2] / "contracts" / "templates"
FILES = [TEMPLATES / f"{kind}.{language}.yaml" for kind in KINDS for language in LANGUAGES]
WORDS = {"title", "name", "address", "details", "it", "reason"}  # keys whose texts are of a language
PLAIN = {"schema", "version", "title", "parties"}  # keys that need no explanation, or have one within


def without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_words(inner) for key, inner in value.items() if key not in WORDS or not isinstance(inner, str | list)}
    return [without_words(inner) for inner in value] if isinstance(value, list) else value


def proved(path: Path, content: bytes) -> CheckedFile:
    """The contract is clean but for values that are still the template's, and its examples hold and reach every rule."""
    path.write_bytes(content)
    (checked,) = check_contracts([path])
    assert [str(one) for one in checked.diagnostics if one.code not in ("template_value", "template_money")] == []
    (result,) = run_examples([checked])
    assert result.wrong == () and [one.differences for one in result.run if one.differences] == []
    assert [rule.name for rule in result.not_reached] == [] and len(result.rules) > 20
    return checked


def test_there_is_a_template_of_each_kind_and_language() -> None:
    assert sorted(TEMPLATES.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_template_is_clean_its_examples_reach_every_rule_and_it_can_be_explained(path: Path, tmp_path: Path) -> None:
    proved(tmp_path / "contract.yaml", path.read_bytes())
    for language in LANGUAGES:
        assert explain_contract(path, language).prose is not None


@pytest.mark.parametrize("kind", KINDS)
def test_both_languages_of_a_template_say_the_same(kind: str) -> None:
    english, chinese = (contract_texts((TEMPLATES / f"{kind}.{language}.yaml").read_bytes()) for language in ("en", "zh"))
    assert without_words(english) == without_words(chinese)
    assert english != chinese


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_of_a_template_is_explained(kind: str) -> None:
    for language in ("en", "zh"):
        lines = (TEMPLATES / f"{kind}.{language}.yaml").read_text("utf-8").split("\n")
        keys = [at for at, line in enumerate(lines) if line[:1].isalpha() and line.split(":")[0] not in PLAIN]
        assert len(keys) > 15 and [lines[at] for at in keys if not lines[at - 1].startswith("#")] == []


MODEL = ["models.EXAMPLE-model", "models.EXAMPLE-model.served_as", "models.EXAMPLE-model.degraded.EXAMPLE-model-4bit"]
MONEY = ["minimum_commitment", "money.tax", "models.EXAMPLE-model.per_million_tokens", "refund.cap", "payment.due"]
GIVEN = {
    "id": ("acme-chat",),
    "title": ("Chat: Acme #1",),
    "provider": ("'Quoted' & Sons, Ltd",),
    "provider-tax-id": ("null",),
    "provider-address": ("1, Road", "[Paris]", "FR"),
    "customer": ("甲乙：丙, Ltd",),
    "customer-tax-id": ("007",),
    "customer-address": ("- 2 Street", "{NO}"),
    "account": ("acme bank", "*", "yes"),
    "currency": ("JPY",),
    "timezone": ("America/New_York",),
    "from": ("2028-02-29",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_given_stands_in_the_contract_and_its_examples_still_hold(kind: str, language: str, tmp_path: Path) -> None:
    given = {name: tuple(parse_value(name, text) for text in texts) for name, texts in GIVEN.items()}
    made = new_contract(kind, language, given)
    texts: Any = proved(tmp_path / "contract.yaml", made.content).contract and contract_texts(made.content)
    for name, values in given.items():
        found = texts
        for part in FIELDS[name].path:
            found = found[part]
        assert found == (list(values) if FIELDS[name].is_list else values[0]), name
    assert texts["effective"]["until"] == "2029-03-01"
    template = (TEMPLATES / f"{kind}.{language}.yaml").read_text("utf-8")
    comments = [line for line in template.split("\n") if line.startswith("#")]
    assert [line for line in made.content.decode().split("\n") if line.startswith("#")] == comments
    assert [name for name, _ in made.unfilled] == ["payment.details", *MODEL]
    lines = made.content.decode().split("\n")
    assert [name for name, _, _ in made.money] == MONEY
    assert all(value in lines[line - 1] for _, line, text in made.money for value in text.split())


@pytest.mark.parametrize(
    "given",
    [
        {"from": ("2026-07-01",), "until": ("2026-08-01",)},
        {"from": ("2026-12-31",), "until": ("2027-02-01",)},
        {"timezone": ("Australia/Lord_Howe",), "from": ("2026-04-01",)},  # whose clocks go back half an hour on 5 April
        {"timezone": ("Africa/Cairo",), "from": ("2026-04-15",)},
        {"timezone": ("Africa/Monrovia",), "from": ("1970-02-01",)},  # whose offset had seconds
    ],
    ids=str,
)
def test_the_examples_move_into_the_first_whole_month(given: dict[str, tuple[str, ...]], tmp_path: Path) -> None:
    for kind in KINDS:
        proved(tmp_path / "contract.yaml", new_contract(kind, "en", given).content)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_left_of_a_template_is_a_warning_at_each_value(path: Path) -> None:
    (checked,) = check_contracts([path])
    found = [(one.code, one.line) for one in checked.diagnostics]
    assert [checked.lines[line - 1].split(":")[0].strip() for code, line in found if code == "template_money"] == ["per_million_tokens"]
    assert sorted({line for code, line in found if code == "template_value"}) == [
        at for at, line in enumerate(checked.lines, 1) if any(mark in line for mark in ("EXAMPLE", "示例")) and at < 80 and "#" not in line
    ]


def test_nothing_given_is_the_template() -> None:
    made = new_contract("batch", "zh", {})
    assert made.content == (TEMPLATES / "batch.zh.yaml").read_bytes()
    lines = made.content.decode().split("\n")
    assert [name for name, _ in made.unfilled][:3] == ["id", "title", "parties.provider.name"]
    assert all("EXAMPLE" in lines[line - 1] or "示例" in lines[line - 1] for _, line in made.unfilled[:-1])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("id", "acme/bank", "a name of the letters a to z"),
        ("currency", "RMB", "did you mean `CNY`"),
        ("timezone", "Beijing", "Asia/Shanghai"),
        ("from", "2026-02-30", "a day of the calendar"),
        ("customer", "", "write the text"),
        ("account", "a\nb", "one line of text"),
        ("title", "a\ufeffb", "text that can be seen"),
    ],
)
def test_a_value_that_no_contract_can_hold_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        parse_value(name, text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"account": ("a", "a")}, "--account: found `a` twice"),
        ({"from": ("2026-07-01",), "until": ("2026-07-01",)}, "--until: found until 2026-07-01, from 2026-07-01"),
        ({"from": ("2026-07-02",), "until": ("2026-08-31",)}, "--until: found 2026-08-31; expected 2026-09-01 or later"),
        ({"from": ("2999-07-01",)}, "--until, a year after --from: found `3000-07-01`"),
    ],
    ids=str,
)
def test_values_that_do_not_go_together_name_the_option(given: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(LedgerError, match=said) as raised:
        new_contract("retrieval", "en", given)
    assert raised.value.exit_code == 2 and raised.value.cure
