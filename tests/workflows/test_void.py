"""Many requests withdrawn at once: chosen by what they are or by their ids, looked at first, all of them or none; and how a request tells
its history."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import RunLedger
from tests.ingest.halves import Halves, gateway
from tests.ingest.sample_rows import row, write_rows

VOID = ["void", "--reason", "load test"]
CURRENT = (
    "SELECT request_id FROM event WHERE NOT EXISTS (SELECT FROM void v "
    "WHERE (v.account, v.request_id, v.revision) = (event.account, event.request_id, event.revision)) ORDER BY account, request_id"
)


@pytest.fixture
def loaded(tmp_path: Path, run_ledger: RunLedger) -> RunLedger:
    """The `ledger` command on four requests of two files."""
    other_hour = row("acme", "c").replace("T10", "T11")
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [row("acme", "a"), row("acme", "b", 20), other_hour]), "--author", "ann")
    run_ledger("ingest", write_rows(tmp_path / "two.csv", [row("other", "a", 30)]), "--author", "ann")
    return run_ledger


@pytest.fixture
def standing(database_url: str) -> Callable[[], str]:
    """The ids of the requests that count."""

    def ids() -> str:
        with psycopg.connect(database_url) as connection:
            return "".join(request_id for (request_id,) in connection.execute(CURRENT))

    return ids


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (["--account", "acme"], "a"),
        (["--account", "acme", "--until", "2026-05-06T11:00:00Z"], "ca"),
        (["--from", "2026-05-06T19:00:00+08:00"], "aba"),
        (["--file", "two.csv"], "abc"),
        (["--model", "m", "--status", "200"], ""),
    ],
    ids=str,
)
def test_requests_are_withdrawn_by_what_they_are(filters: list[str], left: str, loaded: RunLedger, standing: Callable[[], str]) -> None:
    looked = json.loads(loaded(*VOID, *filters, "--dry-run", "--format", "json").stdout)
    assert (looked["dry_run"], standing()) == (True, "abca")
    done = json.loads(loaded(*VOID, *filters, "--yes", "--format", "json").stdout)
    assert done == {**looked, "dry_run": False} and done["requests"] == 4 - len(left) == sum(one["requests"] for one in done["groups"])
    assert standing() == left
    again = json.loads(loaded(*VOID, *filters, "--yes", "--format", "json").stdout)
    assert (again["requests"], again["withdrawn_before"]) == (0, done["requests"])
    assert loaded("verify", "--cells").exit_code == 0


def test_what_fits_no_request_is_said_with_the_accounts_that_come_near(
    tmp_path: Path, loaded: RunLedger, standing: Callable[[], str]
) -> None:
    (tmp_path / "ids").write_text("nope\n")
    wrong = {
        ("--node", "' OR true --", "--yes"): "no request fits",
        ("--account", "acne", "--yes"): "no request is of the account acne; nothing was withdrawn\n  did you mean acme?",
        ("--account", "zzz", "--dry-run"): "ledger status shows the accounts",
        ("a", "--account", "acne"): "did you mean acme?",
        ("--ids", str(tmp_path / "ids"), "--skip-unknown", "--yes"): "no request fits",
        ("--ids", str(tmp_path / "ids"), "--account", "acne", "--yes"): "did you mean acme?",
    }
    for arguments, said in wrong.items():
        refused = loaded(*VOID, *arguments)
        assert refused.exit_code == 1 and said in refused.stderr and standing() == "abca"


def test_a_file_of_ids_withdraws_all_or_none(tmp_path: Path, loaded: RunLedger, standing: Callable[[], str]) -> None:
    ids = tmp_path / "ids"

    def given(content: str, *more: str) -> Any:
        ids.write_text(content, encoding="utf-8")
        return loaded(*VOID, "--ids", ids, "--yes", *more)

    wrong = {"b\nnope\n": "no request nope", "b\na\n": "several accounts have a request a", "account,request_id\nb\n": "row 2"}
    for content, said in wrong.items():
        refused = given(content)
        assert refused.exit_code == 1 and said in refused.stderr and standing() == "abca"
    assert given("b\nnope\n", "--skip-unknown").exit_code == 0 and standing() == "aca"
    assert given("a\n", "--account", "other").exit_code == 0 and standing() == "ac"
    assert "2 requests withdrawn\n" in given("\ufeffrequest_id;account\nc;acme\na;acme\n").stdout and standing() == ""


def test_without_a_terminal_nothing_is_withdrawn_unasked(loaded: RunLedger, standing: Callable[[], str]) -> None:
    refused = loaded(*VOID, "--account", "acme")
    assert refused.exit_code == 2 and "--dry-run" in refused.stderr and standing() == "abca"
    for usage in ([], ["a", "--model", "m"], ["a", "--ids", "x"], ["--skip-unknown", "--account", "acme"]):
        assert loaded(*VOID, *usage).exit_code == 2
    looked = loaded(*VOID, "--account", "acme", "--dry-run").stdout
    assert looked.splitlines()[0] == "acme m 2026-05-06: 3 requests, 40 input and 15 output tokens"
    assert looked.splitlines()[-1] == "3 requests would be withdrawn"


def test_a_request_tells_its_history_and_a_withdrawn_one_comes_back_only_on_purpose(loaded: RunLedger) -> None:
    assert loaded("explain", "a").exit_code == 2  # of which account?
    loaded("void", "b", "--reason", "load test", "--author", "bob")
    correct = ["correct", "b", "--set", "output_tokens=7", "--reason", "was real", "--author", "cid"]
    refused = loaded(*correct)
    assert refused.exit_code == 1 and "--revive" in refused.stderr
    assert json.loads(loaded(*correct, "--revive", "--format", "json").stdout)["revived"] is True
    history = json.loads(loaded("explain", "b", "--format", "json").stdout)
    first, second = history["revisions"]
    assert (history["account"], history["counts"], history["halves"], history["quarantine"]) == ("acme", True, [], [])
    assert (first["load"]["file"], first["load"]["author"], first["fields"]["output_tokens"]) == ("one.csv", "ann", 5)
    assert [first["withdrawn"][name] for name in ("kind", "reason", "author")] == ["void", "load test", "bob"]
    assert (second["load"]["author"], second["withdrawn"], second["fields"]["output_tokens"]) == ("cid", None, 7)
    told = loaded("explain", "b").stdout.splitlines()
    assert told[0] == "acme b counts, in revision 2" and told[-2] == "  output_tokens: 5 -> 7"
    assert told[-1] == "not billed now: no contract covers the account acme at that time: nothing is billed of it"
    assert loaded("explain", "nope").exit_code == 1


def test_status_tells_what_is_there_and_what_waits(tmp_path: Path, loaded: RunLedger) -> None:
    bad = [row("acme", "d", -1), row("acme", "a", 99), row("acme", "e").replace("2026-05", "2026-06")]
    loaded("ingest", write_rows(tmp_path / "three.csv", bad), "--author", "ann")
    loaded("void", "c", "--reason", "load test")
    found = json.loads(loaded("status", "--format", "json").stdout)
    months = [("acme", "2026-05", 2, 2), ("acme", "2026-06", 1, 1), ("other", "2026-05", 1, 1)]
    assert [tuple(one.values()) for one in found["months"]] == months
    assert (found["requests"], found["unassigned"], found["conflicts"], found["quarantine"]) == (4, 4, 1, {"negative_tokens": 1})
    assert [(one["file"], one["read"], one["new"], one["conflict"]) for one in found["loads"]] == [
        ("three.csv", 3, 1, 1), ("two.csv", 1, 1, 0), ("one.csv", 3, 3, 0),
    ]  # fmt: skip
    contract = Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml"
    loaded("contract", "add", contract)
    loaded("ingest", write_rows(tmp_path / "four.csv", [row("acme-bank", "a").replace(",m,", ",deepseek-v4,")]), "--author", "ann")
    loaded("void", "a", "--account", "acme-bank", "--reason", "load test")
    text = loaded("status").stdout
    assert "rows in conflict" in text and "acme-bank-llm: spans to compute again" in text
    assert "by ledger settle 2026-05; unknown models show then" in text and max(map(len, text.splitlines())) <= 100
    loaded("settle", "2026-05", now="2026-06-15T00:00:00Z")
    after = json.loads(loaded("status", "--format", "json").stdout)
    assert after["not_fresh"] == [] and [(one["contract"], one["state"]) for one in after["drafts"]] == [("acme-bank-llm", "draft")]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("chatcmpl-g", "g"), ("cmpl-g", "g"), ("chatcmpl-own", "chatcmpl-own"), ("chatcmpl-h", None), ("chatcmpl-bad", None), ("cmpl-", None)],
)
def test_an_id_with_an_engines_prefix_means_the_same_alone_and_in_a_file(asked: str, meant: str | None, halves: Halves) -> None:
    tokens = {"in": 7, "out": 8}
    halves.load(gateway("g", **tokens), gateway("chatcmpl-own", 1, **tokens), gateway("own", 2, **tokens), gateway("bad", 3, **tokens))
    halves.load(gateway("other", 4, header="chatcmpl-h", **tokens), gateway("h", 5, **tokens))
    halves.load(gateway("chatcmpl-bad", 6, ms=-5, **tokens))
    (halves.folder / "ids").write_text(f"{asked}\n")
    looked = halves.run_ledger(*VOID, "--ids", halves.folder / "ids", "--dry-run", "--format", "json")
    alone = halves.run_ledger(*VOID, asked, "--format", "json")
    assert {looked.exit_code, alone.exit_code} == {0 if meant else 1}
    if meant:
        [chosen] = json.loads(looked.stdout)["sample"]
        assert json.loads(alone.stdout)["request_id"] == chosen["request_id"] == meant
    else:
        assert f"there is no request {asked}" in alone.stderr and f"there is no request {asked};" in looked.stderr
