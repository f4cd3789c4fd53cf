"""Every rule of the contract file is broken once and kept once, as rules.yaml says, and the documentation knows all of them."""

import re
from pathlib import Path

import pytest

from ledger.contract.diagnostic import Severity

from .codes_page import PAGE, page, parts
from .golden import GOLDEN, QUIET, Case, cases, check, edited, made_files, transcript, transcripts

ROOT = Path(__file__).parents[2]
CASES = cases()
EDITED = [case for case in CASES if case.test is None]


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.name)
def test_a_broken_rule_is_found_with_its_code_and_place(case: Case) -> None:
    files = dict(case.bad)
    matching = [each for each in check(case.bad) if each.code == case.code and case.found in each.found]
    assert matching, [str(each) for each in check(case.bad)]
    diagnostic = matching[0]
    assert diagnostic.expected and diagnostic.cure
    if case.at:
        lines = re.split("\n", files[diagnostic.file].decode())
        rest = "\n".join(lines[diagnostic.line - 1 :])[diagnostic.column - 1 :]
        assert rest.startswith(case.at), f"{diagnostic}\n{rest[:40]!r}"


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.name)
def test_a_contract_close_to_a_broken_one_is_good(case: Case) -> None:
    assert [str(each) for each in check(case.good)] == []


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.name)
def test_an_edit_breaks_no_other_rule_by_accident(case: Case) -> None:
    assert {each.code for each in check(case.bad)} == {case.code, *COMPANIONS.get(case.name, ())}


# A few files cannot break one rule alone.
COMPANIONS = {
    "nine-levels-of-aliases": ("anchor", "unknown_key"),
}


def test_the_bad_files_are_those_that_the_edits_make() -> None:
    made = dict(made_files())
    assert {file.name for file, content in made.items() if not file.exists() or file.read_bytes() != content} == set()
    by_hand = {GOLDEN / case.files[0] for case in EDITED if not case.is_made}
    assert set((GOLDEN / "bad").iterdir()) == made.keys() | by_hand


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.name)
def test_the_command_says_of_a_bad_file_exactly_what_is_expected(case: Case) -> None:
    assert transcript(case) == transcripts()[case.name]


@pytest.mark.parametrize("case", [case for case in CASES if case.test], ids=lambda case: case.name)
def test_a_rule_without_an_edit_names_a_test_that_exists(case: Case) -> None:
    assert case.test is not None
    module, _, function = case.test.partition("::")
    assert f"def {function}(" in (ROOT / "tests" / "contract" / module).read_text("utf-8")


def codes_in_the_code() -> set[str]:
    workflows = [ROOT / "ledger" / "workflows" / name for name in ("contract.py", "governing_document.py")]
    sources = [*(ROOT / "ledger" / "contract").glob("*.py"), *workflows]
    given = re.compile(r'(?:code=|\bRefusal\(\s*|\brefuse\(\s*|\bwarning\(\s*)"([a-z0-9_]+)"')
    return {code for source in sources for code in given.findall(source.read_text("utf-8"))}


def test_every_code_has_a_case() -> None:
    assert {case.code for case in CASES} == codes_in_the_code()


DOCUMENTED = [row for part in parts() for row in part["codes"]]


def test_every_code_is_documented_and_no_other() -> None:
    assert sorted(row["code"] for row in DOCUMENTED) == sorted(codes_in_the_code())


@pytest.mark.parametrize("row", DOCUMENTED, ids=lambda row: row["code"])
def test_the_example_of_a_code_gives_that_code_and_its_neighbour_is_clean(row: dict[str, str]) -> None:
    if "case" not in row:
        assert row["bad"] and row["good"] and [case for case in CASES if case.code == row["code"] and case.test]
        return
    (case,) = [case for case in EDITED if case.name == row["case"]]
    assert {each.code for each in check(case.bad)} == {row["code"]}
    assert check(case.good) == ()


def test_the_page_of_codes_is_made_from_the_examples() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.contract.golden writes it"


# What is found where two codes fit: the earlier part of the page hides the later ones, or comes first at the place.
PRECEDENCE: dict[str, tuple[list[str], list[str]]] = {
    "a value before a rule of its section": (["target: 300ms", "target: 300", "[standard, vip]", "[standard, night]"], ["bad_duration"]),
    "a value beside a rule of another section": (
        ["target: 300ms", "target: 300", "< 100ms", "< 99ms"],
        ["bad_duration", "tier_gap"],
    ),
    "a key before its values": (["target: 300ms", "targte: 300"], ["unknown_key"]),
    "a key given twice before what it says": (["target: 300ms", "target: 300ms\n  target: 300"], ["duplicate_key"]),
    "an alias before what it stands for": (["grace: 24h", "grace: *day"], ["alias"]),
    "the form before lint": (["cap: 100%", "cap: none", "grace: 24h", "grace: !!str 24h"], ["tag"]),
    "a rule before lint": (["cap: 100%", "cap: none", "< 100ms", "< 99ms"], ["tier_gap"]),
    "syntax before everything in its part": (["target: 300ms", "target: [300", "window: 1h", "window: 2x"], ["bad_syntax"]),
    "syntax beside what is wrong in other parts": (
        ["target: 300ms", "target: [300", "tokens: 2x", "tokens: 2"],
        ["bad_syntax", "bad_factor"],
    ),
    "a character before syntax": (["title: Inference", "title: \u202eInference", "target: 300ms", "target: [300"], ["bad_character"]),
    "a mark at the start beside what follows": (
        ["schema: ledger", "\ufeffschema: ledger", "grace: 24h", "grace: 24"],
        ["byte_order_mark", "bad_duration"],
    ),
}


@pytest.mark.parametrize("name", PRECEDENCE)
def test_codes_have_an_order_of_precedence(name: str) -> None:
    edit, codes = PRECEDENCE[name]
    assert [each.code for each in check((("contract.yaml", edited(QUIET, edit).encode()),))] == codes
    documented = [row["code"] for row in DOCUMENTED]
    assert sorted(codes, key=documented.index) == codes


def test_a_file_that_is_too_large_is_not_asked_for_its_encoding_nor_one_of_another_encoding_for_its_characters() -> None:
    wide = "\x00".encode("utf-16")
    assert [each.code for each in check((("contract.yaml", wide * 40_000),))] == ["too_large"]
    assert [each.code for each in check((("contract.yaml", wide),))] == ["bad_encoding"]


def documented_rules() -> list[tuple[str, list[str]]]:
    """The rows of rules.md: a piece of the specification, and the cases and tests that prove it."""
    page = (ROOT / "docs" / "contracts" / "rules.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")]
    assert rows.pop(0) == ["Sentence", "Codes", "Proved by"]
    return [(sentence, re.findall("`([^`]+)`", proofs)) for sentence, _, proofs in rows]


def test_the_table_of_rules_names_the_codes_of_its_cases() -> None:
    page = (ROOT / "docs" / "contracts" / "rules.md").read_text("utf-8")
    code_of = {case.name: case.code for case in CASES}
    for line in page.splitlines():
        if line.startswith("| ") and not line.startswith("| Sentence"):
            _, codes, proofs = line.strip("|").split("|")
            proved = {code_of[proof] for proof in re.findall("`([^`]+)`", proofs) if proof in code_of}
            assert proved <= set(re.findall("`([^`]+)`", codes)), line


def test_every_sentence_of_the_specification_is_in_the_table_of_rules() -> None:
    specification = (ROOT / "docs" / "specification.md").read_text("utf-8")
    section = specification[specification.index("Rules the validator proves") : specification.index("## 4. Classification")]
    left = " ".join(section.split())
    for sentence, _ in documented_rules():
        assert sentence in left, sentence
        left = left.replace(sentence, "", 1)
    assert not re.search(r"\w", left), left


def test_the_table_of_rules_names_cases_and_tests_that_exist() -> None:
    names = {case.name for case in CASES}
    functions = {
        function
        for module in (ROOT / "tests" / "contract").glob("test_*.py")
        for function in re.findall(r"^def (test_\w+)", module.read_text("utf-8"), re.MULTILINE)
    }
    proofs = {proof for _, named in documented_rules() for proof in named}
    assert proofs <= names | functions, proofs - names - functions


def test_every_rule_case_is_on_the_page_of_rules() -> None:
    page = (ROOT / "docs" / "contracts" / "rules.md").read_text("utf-8")
    values = [case.name for case in CASES].index("duration-without-unit")
    rules = [case.name for case in CASES].index("foreign-function")
    assert values < rules  # the form of the file and of each value is told by codes.md alone
    assert [case.name for case in CASES[rules:] if f"`{case.name}`" not in page] == []


@pytest.mark.parametrize("file", sorted((GOLDEN / "good").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_good_file_has_no_error(file: Path) -> None:
    found = check(((file.name, file.read_bytes()),))
    assert not [str(each) for each in found if each.severity is Severity.ERROR]


@pytest.mark.parametrize("name", ["quiet", "specification", "two-models"])
def test_a_contract_that_accepts_what_it_means_has_no_warning(name: str) -> None:
    assert not check(((name, (GOLDEN / "good" / f"{name}.yaml").read_bytes()),))
