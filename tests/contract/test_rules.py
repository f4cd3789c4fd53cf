"""Every rule of the contract file is broken once and kept once, as rules.yaml says, and the documentation knows all of them."""

import re
from pathlib import Path

import pytest

from ledger.contract.diagnostic import Severity

from .golden import GOLDEN, Case, cases, check

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
    found = check(case.good)
    assert not [str(each) for each in found if each.severity is Severity.ERROR or each.code == case.code]


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.name)
def test_an_edit_breaks_no_other_rule_by_accident(case: Case) -> None:
    errors = {each.code for each in check(case.bad) if each.severity is Severity.ERROR}
    assert errors <= {case.code, *COMPANIONS.get(case.name, ())}


# A few edits cannot break one rule alone.
COMPANIONS = {
    "list-instead-of-keys": ("missing_key",),
}


@pytest.mark.parametrize("case", [case for case in CASES if case.test], ids=lambda case: case.name)
def test_a_rule_without_an_edit_names_a_test_that_exists(case: Case) -> None:
    assert case.test is not None
    module, _, function = case.test.partition("::")
    assert f"def {function}(" in (ROOT / "tests" / "contract" / module).read_text("utf-8")


def codes_in_the_code() -> set[str]:
    sources = [*(ROOT / "ledger" / "contract").glob("*.py"), ROOT / "ledger" / "workflows" / "contract.py"]
    given = re.compile(r'(?:code=|\bRefusal\(\s*|\brefuse\(\s*|\b_warning\(\s*)"([a-z0-9_]+)"')
    return {code for source in sources for code in given.findall(source.read_text("utf-8"))}


def test_every_code_has_a_case() -> None:
    assert {case.code for case in CASES} == codes_in_the_code()


def test_every_code_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "contracts" / "codes.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.MULTILINE)) == codes_in_the_code()


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
    form = {case.name for case in CASES[: next(at for at, case in enumerate(CASES) if case.name == "duration-without-unit")]}
    scalars = {case.name for case in CASES if case.code.startswith("bad_") and case.code not in ("bad_expression", "bad_factor")}
    assert names - proofs <= form | scalars, sorted(names - proofs - form - scalars)


@pytest.mark.parametrize("file", sorted((GOLDEN / "good").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_good_file_has_no_error(file: Path) -> None:
    found = check(((file.name, file.read_bytes()),))
    assert not [str(each) for each in found if each.severity is Severity.ERROR]


@pytest.mark.parametrize("name", ["quiet", "specification", "two-models"])
def test_a_contract_that_accepts_what_it_means_has_no_warning(name: str) -> None:
    assert not check(((name, (GOLDEN / "good" / f"{name}.yaml").read_bytes()),))


@pytest.mark.parametrize("file", sorted((GOLDEN / "bad").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_bad_file_has_an_error(file: Path) -> None:
    assert [each for each in check(((file.name, file.read_bytes()),)) if each.severity is Severity.ERROR]
