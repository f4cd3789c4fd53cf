"""What is stored of contracts: the list, the file as it was added, and what happened."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.conftest import RunLedger
from tests.workflows.base_contract import OTHER, REQUIRED, SECOND, write_contract


@pytest.fixture
def files(run_ledger: RunLedger, tmp_path: Path) -> tuple[Path, Path]:
    """Two versions, the second for the first from 10 May on, each added on its day; and an approval of the first."""
    first, second = write_contract(tmp_path, REQUIRED, name="first.yaml"), write_contract(tmp_path, *SECOND, name="second.yaml")
    for path, day, author in ((first, "05-01", "ana"), (second, "05-08", "bo")):
        assert run_ledger("contract", "add", path, "--author", author, now=f"2026-{day}T09:00:00Z").exit_code == 0
    approval = ("approve", "acme-bank-llm", "1", "--role", "legal", "--author", "cy", "--reason", "as signed")
    assert run_ledger("contract", *approval, now="2026-05-02T09:00:00Z").exit_code == 0
    return first, second


def short(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:12]


def test_each_version_is_listed_with_its_days_and_what_it_lacks(run_ledger: RunLedger, files: tuple[Path, Path]) -> None:
    assert run_ledger("contract", "list").stdout == (
        f"acme-bank-llm version 1  Acme Bank Co.  sha256 {short(files[0])}\n"
        "  effective from 2026-01-01 until 2027-01-01\n"
        "  in force from 2026-01-01 until 2026-05-10\n"
        "  accounts acme-bank\n"
        "  approvals legal by cy, finance missing\n"
        "  added 2026-05-01T09:00:00Z by ana from first.yaml\n"
        f"acme-bank-llm version 2  Acme Bank Co.  sha256 {short(files[1])}\n"
        "  effective from 2026-05-10 until 2027-01-01, replaces version 1\n"
        "  in force from 2026-05-10 until 2027-01-01\n"
        "  accounts acme-bank\n"
        "  approvals legal missing\n"
        "  added 2026-05-08T09:00:00Z by bo from second.yaml\n"
    )
    first, second = json.loads(run_ledger("contract", "list", "--format", "json").stdout)
    assert first == {
        "contract": "acme-bank-llm", "version": 1, "sha256": sha256(files[0].read_bytes()).hexdigest(), "customer": "Acme Bank Co.",
        "accounts": ["acme-bank"], "timezone": "Asia/Shanghai", "effective": {"from": "2026-01-01", "until": "2027-01-01"},
        "in_force": [{"from": "2026-01-01", "until": "2026-05-10"}], "replaces": None, "required_approvals": ["legal", "finance"],
        "approvals": [{"role": "legal", "author": "cy", "reason": "as signed", "approved_at": "2026-05-02T09:00:00Z"}],
        "missing_approvals": ["finance"], "file": "first.yaml", "added_at": "2026-05-01T09:00:00Z", "author": "ana",
    }  # fmt: skip
    assert (second["version"], second["replaces"], second["approvals"], second["missing_approvals"]) == (2, 1, [], ["legal"])


def test_what_holds_up_settlements_is_listed_by_itself_and_counted_in_the_status(run_ledger: RunLedger, files: tuple[Path, Path]) -> None:
    def held_up() -> tuple[list[int], int]:
        listed = json.loads(run_ledger("contract", "list", "--unapproved", "--format", "json").stdout)
        return [one["version"] for one in listed], json.loads(run_ledger("status", "--format", "json").stdout)["unapproved"]

    assert held_up() == ([1, 2], 2)
    run_ledger("contract", "approve", "acme-bank-llm", "2", "--role", "legal")
    assert held_up() == ([1], 1)
    assert "contract versions to be approved   1   ledger contract list --unapproved" in run_ledger("status").stdout
    run_ledger("contract", "approve", "acme-bank-llm", "1", "--role", "finance")
    assert held_up() == ([], 0)
    none = run_ledger("contract", "list", "--unapproved")
    assert (none.stdout, none.stderr) == ("", "no version in force lacks an approval\n")
    assert "to be approved" not in run_ledger("status").stdout


def test_a_version_that_others_stand_for_is_never_in_force(run_ledger: RunLedger, tmp_path: Path) -> None:
    whole = write_contract(tmp_path, ("version: 1\n", "version: 2\nreplaces: 1\n"), ("  until: 2027-01-01\n", ""), name="second.yaml")
    assert run_ledger("contract", "add", write_contract(tmp_path, REQUIRED), whole).exit_code == 0
    lines = run_ledger("contract", "list").stdout.splitlines()
    assert [line for line in lines if "in force" in line] == ["  in force never: other versions stand for it", "  in force from 2026-01-01"]
    assert [one["in_force"] for one in json.loads(run_ledger("contract", "list", "--format", "json").stdout)] == [
        [],
        [{"from": "2026-01-01", "until": None}],
    ]
    assert run_ledger("contract", "list", "--unapproved").stdout == ""  # nothing is ever settled under it


def test_without_contracts_the_list_is_empty_and_says_how_to_add_one(run_ledger: RunLedger) -> None:
    empty = run_ledger("contract", "list")
    assert (empty.exit_code, empty.stdout) == (0, "") and "ledger contract add FILE" in empty.stderr
    assert json.loads(run_ledger("contract", "list", "--format", "json").stdout) == []


def test_a_version_is_shown_byte_for_byte_as_it_was_added(run_ledger: RunLedger, tmp_path: Path) -> None:
    path = write_contract(tmp_path, ("Acme Bank Co.", "艾克米银行"), ("version: 1\n", "version: 1\r\n"))
    path.write_bytes(path.read_bytes() + b"# \xe6\x9c\xab")  # line ends of two kinds, a comment, no line end at the end
    assert run_ledger("contract", "add", path, "--author", "ana", now="2026-05-01T09:00:00.5Z").exit_code == 0
    shown = run_ledger("contract", "show", "acme-bank-llm")
    assert shown.stdout_bytes == path.read_bytes()
    hashed = sha256(path.read_bytes()).hexdigest()
    assert shown.stderr == f"acme-bank-llm version 1, added 2026-05-01T09:00:00Z by ana from contract.yaml, sha256 {hashed}\n"


def test_one_version_of_several_is_shown_by_its_number(run_ledger: RunLedger, files: tuple[Path, Path]) -> None:
    assert run_ledger("contract", "show", "acme-bank-llm", "1").stdout_bytes == files[0].read_bytes()
    assert run_ledger("contract", "show", "acme-bank-llm").stdout_bytes == files[1].read_bytes()
    seventh = run_ledger("contract", "show", "acme-bank-llm", "7")
    assert seventh.stderr == (
        "error: the contract acme-bank-llm has no version 7\n  it has versions 1 and 2; see: ledger contract history acme-bank-llm\n"
    )
    assert run_ledger("contract", "show", "acme-bank-llm", "--version", "1").exit_code == 2


def test_the_history_tells_in_order_who_added_and_approved_what(run_ledger: RunLedger, files: tuple[Path, Path]) -> None:
    told = run_ledger("contract", "history", "acme-bank-llm")
    assert told.stdout.splitlines() == [
        "2026-05-01T09:00:00Z  version 1 added by ana from first.yaml, effective from 2026-01-01 until 2027-01-01 "
        f"(sha256 {short(files[0])})",
        f"2026-05-02T09:00:00Z  version 1 approved for legal by cy: as signed (sha256 {short(files[0])})",
        "2026-05-08T09:00:00Z  version 2 added by bo from second.yaml, effective from 2026-05-10 until 2027-01-01, replaces version 1 "
        f"(sha256 {short(files[1])})",
    ]
    assert [line for line in told.stderr.splitlines() if line.startswith("  ")] == [
        "  ledger contract approve acme-bank-llm 1 --role finance",
        "  ledger contract approve acme-bank-llm 2 --role legal",
    ]
    steps = json.loads(run_ledger("contract", "history", "acme-bank-llm", "--format", "json").stdout)
    assert [(step["what"], step["version"], step["sha256"][:12], step["author"]) for step in steps] == [
        ("added", 1, short(files[0]), "ana"),
        ("approved", 1, short(files[0]), "cy"),
        ("added", 2, short(files[1]), "bo"),
    ]
    assert steps[1]["role"] == "legal" and steps[2]["replaces"] == 1 and steps[0]["file"] == "first.yaml"


def test_no_text_of_an_author_or_a_file_makes_a_line_of_its_own(run_ledger: RunLedger, tmp_path: Path) -> None:
    forged = "\n2026-05-02T09:00:00Z  version 1 approved for finance by the board"
    path = write_contract(tmp_path, REQUIRED, name="first\n.yaml")
    told = [run_ledger("contract", "add", path, "--author", f"ana{forged}", now="2026-05-01T09:00:00Z")]
    approval = ("contract", "approve", "acme-bank-llm", "1", "--role", "legal", "--author", f"cy{forged}")
    told += [run_ledger(*approval, "--reason", f"as signed{forged}", now="2026-05-02T09:00:00Z"), run_ledger(*approval)]
    told += [run_ledger(*approval[:5], "finance", *approval[6:])]
    told += [run_ledger("contract", *command) for command in (("history", "acme-bank-llm"), ("list",), ("show", "acme-bank-llm"))]
    assert [result.exit_code for result in told] == [0] * len(told)
    lines = [line for result in told for line in result.output.splitlines()]
    assert not [line for line in lines if line.startswith("2026-05-02T09:00:00Z  version 1 approved for finance by the board")]
    assert not [line for line in lines if line.startswith(".yaml")]
    escaped = forged.replace("\n", "\\u000a")
    assert [line.split(" (sha256")[0] for line in told[-3].stdout.splitlines()][:2] == [
        f"2026-05-01T09:00:00Z  version 1 added by ana{escaped} from first\\u000a.yaml, effective from 2026-01-01 until 2027-01-01",
        f"2026-05-02T09:00:00Z  version 1 approved for legal by cy{escaped}: as signed{escaped}",
    ]


@pytest.mark.parametrize(
    ("stored", "offered", "at", "told"),
    [
        (
            [[]],
            [("version: 1", "version: 2")],
            "effective:",
            "versions_overlap: found version 2 in force together with version 1 from 2026-01-01; "
            "expected one version in force on each day; "
            "write `replaces: 1` in version 2, which then stands for it on the days that both cover\n",
        ),
        (
            [[("version: 1", "version: 2")]],
            [],
            "effective:",
            "versions_overlap: found version 1 in force together with version 2 from 2026-01-01; "
            "expected one version in force on each day; change its days, or give it a number above 2 and `replaces: 2`\n",
        ),
        (
            [[("version: 1", "version: 2"), ("from: 2026-01-01", "from: 2026-06-01")]],
            [("until: 2027-01-01", "until: 2026-06-01"), ("currency: CNY", "currency: USD")],
            "USD",
            "fixed_term_changed: found `USD`, where version 2 has `CNY`; ",
        ),
        (
            [[("until: 2027-01-01", "until: 2026-06-01")], [*OTHER]],
            [("version: 1", "version: 2"), ("from: 2026-01-01", "from: 2026-06-01"), ("- acme-bank\n", "- other-account\n")],
            "other-account",
            "account_in_two_contracts: found the account `other-account` from 2026-06-01, which then belongs to version 1 of `other` too; ",
        ),
        (
            [[]],
            [("currency: CNY", "currency: USD")],
            "1\n",
            "version_taken: found version 1 of `acme-bank-llm`, which contract.yaml (stored) is too, with other content; ",
        ),
    ],
    ids=["a later one", "an earlier one", "another currency", "an account of another contract", "a number that is taken"],
)
def test_what_does_not_go_with_stored_versions_is_told_at_its_place_in_the_file(
    stored: list[list[tuple[str, str]]], offered: list[tuple[str, str]], at: str, told: str, run_ledger: RunLedger, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    for changes in stored:
        assert run_ledger("contract", "add", write_contract(tmp_path / "old", *changes)).exit_code == 0
    file = write_contract(tmp_path, *offered)  # of the same name
    text = file.read_text()
    before = text[: text.index(at, text.index("\nversion:"))].split("\n")
    number, column = len(before), len(before[-1])
    refused = run_ledger("contract", "add", file)
    _, _, rest = refused.stderr.partition(f"{file}:{number}:{column + 1}: error ")  # warnings are told first
    assert refused.exit_code == 1 and rest.startswith(told), refused.stderr
    assert rest.splitlines()[1:3] == [f"    {text.splitlines()[number - 1]}", f"    {' ' * column}^"]
    assert refused.stderr.count(": error ") == 1


def test_an_account_moves_to_another_contract_as_the_refusal_says(run_ledger: RunLedger, tmp_path: Path) -> None:
    assert run_ledger("contract", "add", write_contract(tmp_path)).exit_code == 0
    new = write_contract(tmp_path, ("id: acme-bank-llm", "id: other"), ("from: 2026-01-01", "from: 2026-07-01"), name="new.yaml")
    refused = run_ledger("contract", "add", new)
    assert (
        refused.exit_code == 1
        and (
            "first add version 2 of `acme-bank-llm`, with `replaces: 1`, `effective: {from: 2026-07-01, until: 2027-01-01}` "
            "and with another account in its place\n"
        )
        in refused.stderr
    )
    moved = [
        ("version: 1\n", "version: 2\nreplaces: 1\n"),
        ("from: 2026-01-01", "from: 2026-07-01"),
        ("    - acme-bank\n", "    - acme-bank-old\n"),
    ]
    assert run_ledger("contract", "add", write_contract(tmp_path, *moved, name="moved.yaml")).exit_code == 0
    assert run_ledger("contract", "add", new).exit_code == 0
