"""Refused rows: listed, shown with their history, repaired one by one or in a table, dismissed. Nothing leaves quarantine in silence."""

import csv
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ledger.cli.main import cli
from ledger.ingest.mapping_file import built_in_mappings
from ledger.ingest.resubmission import CANONICAL_COLUMNS
from ledger.settlement.statement import Unresolved
from ledger.store.database import Database
from ledger.store.quarantine import RowFilter
from ledger.store.settlements import count_unresolved
from ledger.workflows.in_force import contracts_in_force
from ledger.workflows.requeue import requeue_rows
from ledger.workflows.unknown import UnknownNames
from ledger.workflows.verify_cells import verify_cells
from tests.ingest.sample_rows import row, write_rows
from tests.properties.product import fresh_database

Run = Callable[..., Any]
Query = Callable[..., list[Any]]

MAPPING = """\
schema: ledger/mapping/v1
name: gateway
identify: [trace]
optional: [at, took, waited, fallback]
columns:
  account: tenant
  request_id: trace || '/' || file_stem() || '/' || row_number()
  model: lower(model)
  received_at: {value: at, unit: epoch_ms}
  e2e_us: {value: took, unit: s}
  queue_us: {value: waited, unit: ns}
  input_tokens: prompt
  output_tokens: coalesce(completion, fallback)
"""

TEAMS = """\
schema: ledger/mapping/v1
name: teams
identify: [id, at]
optional: [team, tenant]
columns:
  account: {account}
  request_id: {request_id}
  model: {{constant: m}}
  node: tenant
  received_at: {{value: at, unit: rfc3339}}
  input_tokens: in
  output_tokens: out
"""


@pytest.fixture
def listed(run_ledger: Run) -> Callable[..., list[dict[str, Any]]]:
    def run(*arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(run_ledger("quarantine", "list", "--format", "json", *arguments).stdout)
        return found

    return run


def exported(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output)))


def refused(request_id: str, account: str = "acme", tokens: str = "") -> str:
    """A row without its output tokens."""
    return row(account, request_id).removesuffix("5") + tokens


def test_rows_are_chosen_counted_and_limited(tmp_path: Path, run_ledger: Run, listed: Callable[..., list[dict[str, Any]]]) -> None:
    later = refused("c", "other").replace("2026-05-06T10", "2026-05-07T10")
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [refused("a"), refused("b"), row("acme", "d", -1), later]))
    run_ledger("ingest", write_rows(tmp_path / "two.csv", [row("acme", "e"), row("acme", "e", 11), row("acme", "").replace("2026", "x")]))
    everything = listed("--state", "all")
    assert [one["request_id"] for one in everything] == ["a", "b", "d", "c", "e", None]
    for arguments, expected in (
        (["--reason", "usage_missing"], "abc"),
        (["--refused-for", "conflict"], "e"),
        (["--account", "other"], "c"),
        (["--file", "two.csv", "--account", "acme", "--reason", "conflict"], "e"),
        (["--since", "2026-05-07T10:00:00Z"], "c"),
        (["--until", "2026-05-07T18:00:00+08:00"], "abde"),
        (["--limit", "2"], "ab"),
        (["--request-id", "d"], "d"),
        (["--state", "resolved"], ""),
        (["--file", "'; DROP TABLE quarantine; --"], ""),
    ):
        assert "".join(one["request_id"] for one in listed(*arguments)) == expected, arguments
    shown = run_ledger("quarantine", "list", "--limit", "1")
    assert shown.stdout.count("\n") == 1
    assert shown.stderr == "1 of 6 rows shown, 5 more: 3 usage_missing, 1 conflict, 1 missing_field, 1 negative_tokens\n"
    assert run_ledger("quarantine", "list", "--count", "--file", "one.csv").stdout == "3 usage_missing\n1 negative_tokens\n"
    assert json.loads(run_ledger("quarantine", "list", "--count", "--format", "json", "--account", "other").stdout) == {"usage_missing": 1}
    assert run_ledger("quarantine", "list", "--since", "2026-05-07").exit_code == 2
    run_ledger("quarantine", "dismiss", "--request-id", "b", "--reason", "=1+1")
    (row_of_b,) = exported(run_ledger("quarantine", "list", "--state", "resolved", "--format", "csv").stdout)
    assert (row_of_b["request_id"], row_of_b["resolution"], row_of_b["resolution_reason"]) == ("b", "dismissed", "'=1+1")


def test_the_rows_of_a_contracts_month_are_those_that_its_settlement_counts(
    tmp_path: Path, run_ledger: Run, listed: Callable[..., list[dict[str, Any]]]
) -> None:
    contract = Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml"
    assert run_ledger("contract", "add", contract).exit_code == 0
    mine = refused("a", "acme-bank")
    rows = [mine, mine.replace("2026-05-06T10", "2026-04-30T17"), refused("c", "other"), mine.replace("2026-05-06T10", "2026-05-31T16")]
    unreadable = [mine.replace("2026-05-06", "some day"), mine.replace("acme-bank", "")]
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [*rows, *unreadable]))
    of_may = listed("--contract", "acme-bank-llm", "--period", "2026-05")
    assert [one["line"] for one in of_may] == [2, 3, 6, 7]
    settled = run_ledger("settle", "2026-05", "--format", "json", now="2026-06-15T00:00:00Z")
    assert json.loads(settled.stdout)[0]["unresolved"]["quarantined"] == len(of_may)
    none = run_ledger("quarantine", "list", "--contract", "acme-bank-llm", "--period", "1999-05")
    assert none.exit_code == 1 and "ledger contract list" in none.stderr
    assert run_ledger("quarantine", "list", "--contract", "acme-bank-llm").exit_code == 2


def test_a_row_is_repaired_by_setting_columns_and_tells_its_history(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [refused("a")]), "--author", "ann", now="2026-06-01T00:00:00Z")
    [(number,)] = rows_of("SELECT quarantine_id FROM quarantine")
    repair = ["quarantine", "requeue", str(number), "--author", "bob"]
    looked = run_ledger(*repair, "--set", "output_tokens=7", "--dry-run")
    assert (looked.exit_code, looked.stdout) == (0, f"{number} accepted\n") and "nothing was written" in looked.stderr
    assert rows_of("SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM resubmission), (SELECT count(*) FROM batch)") == [(0, 0, 1)]
    wrong = run_ledger(*repair, "--set", "output_tokens=7.0", "--set", "e2e_ms=99,5")
    assert (wrong.exit_code, wrong.stdout) == (1, f"{number} bad_number: e2e_ms is '99,5', expected a decimal number such as 99.5\n")
    done = run_ledger(*repair, "--set", "output_tokens=7", "--set", "inference_us=", "--set", "e2e_ms=99.5", "--reason", "engine log",
                      "--format", "json")  # fmt: skip
    assert json.loads(done.stdout) == [{"id": number, "outcome": "accepted", "detail": None, "kept_apart": None}]
    assert rows_of("SELECT request_id, inference_us, e2e_us, output_tokens FROM event") == [("a", None, 99_500, 7)]
    again = run_ledger(*repair)
    assert (again.exit_code, again.stdout) == (0, f"{number} was resolved before\n")
    history = json.loads(run_ledger("quarantine", "show", str(number), "--format", "json").stdout)
    assert (history["refused_by"], history["refused_at"], history["file"], history["line"]) == ("ann", "2026-06-01T00:00:00Z", "one.csv", 2)
    assert [(one["outcome"], one["set"], one["author"], one["reason"], one["mapping"]) for one in history["sent_in_again"]] == [
        ("bad_number", {"output_tokens": "7.0", "e2e_ms": "99,5"}, "bob", "requeued", "canonical"),
        ("accepted", {"output_tokens": "7", "inference_us": "", "e2e_ms": "99.5"}, "bob", "engine log", "canonical"),
    ]
    assert (history["resolution"], history["resolution_reason"], history["resolved_by"]) == ("requeued", "engine log", "bob")
    text = run_ledger("quarantine", "show", str(number)).stdout
    assert text.startswith(f"{number} usage_missing: output_tokens is empty, with status 200\n")
    assert "sent in again by bob (engine log) under the mapping canonical, e2e_ms=99.5, inference_us=, output_tokens=7: accepted" in text
    assert run_ledger("quarantine", "show", "99").exit_code == 1


def test_a_row_in_conflict_stays_counts_as_one_and_a_correction_settles_it(
    tmp_path: Path, run_ledger: Run, rows_of: Query, database: Database
) -> None:
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [row("acme-bank", "a", 10), refused("b", "acme-bank")]))
    late = write_rows(tmp_path / "late.csv", [row("acme-bank", "a", 30)])
    run_ledger("ingest", late, now="2026-05-06T09:00:00Z")
    done = run_ledger("quarantine", "requeue", "--refused-for", "future")
    assert (done.exit_code, done.stdout) == (1, "2 conflict: differs from the stored row in input_tokens\n")
    assert rows_of("SELECT request_id FROM quarantine WHERE resolution IS NULL ORDER BY 1") == [("a",), ("b",)]
    contract = Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml"
    assert run_ledger("contract", "add", contract).exit_code == 0
    with database.begin() as connection:
        periods = [terms for _, terms in contracts_in_force(connection, "2026-05")]
        assert count_unresolved(connection, periods)["acme-bank-llm"] == Unresolved(conflicts=1, quarantined=1)
    assert "settles the rows in conflict 2" in run_ledger("correct", "a", "--set", "input_tokens=30", "--reason", "meter").stdout
    assert rows_of("SELECT quarantine_id, resolution FROM quarantine WHERE resolution IS NOT NULL") == [(2, "corrected")]


def test_a_filter_that_finds_nothing_says_which_accounts_come_near(tmp_path: Path, run_ledger: Run) -> None:
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [refused("a", "acme-bank"), row("globex", "b")]))
    hint = "nothing is known of the account acme-bnak: did you mean acme-bank?\n"
    table = str(tmp_path / "table.csv")
    for command, said in (
        (["list"], "0 rows\n" + hint),
        (["list", "--count"], hint),
        (["list", "--format", "json"], "0 rows\n" + hint),
        (["dismiss", "--reason", "ours"], hint),
        (["requeue", "--reason", "ours"], hint),
        (["requeue", "--reason", "ours", "--dry-run"], "no row\n" + hint + "dry run: nothing was written\n"),
        (["export", "--output", table], f"0 rows written to {table}\n" + hint),
    ):
        done = run_ledger("quarantine", *command, "--account", "acme-bnak")
        assert (done.exit_code, done.stderr) == (0, said), command
    assert run_ledger("quarantine", "list", "--account", "globex").stderr == "0 rows\n"  # which is known
    assert run_ledger("quarantine", "list", "--account", "zzz").stderr.endswith("zzz: ledger status shows the accounts that there are\n")


def test_rows_are_dismissed_by_ids_and_by_filters(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    run_ledger("ingest", write_rows(tmp_path / "one.csv", [refused("a"), refused("b"), refused("c", "other"), row("acme", "d", -1)]))
    dismiss = ["quarantine", "dismiss", "--reason", "ours"]
    assert run_ledger(*dismiss).exit_code == 2
    assert run_ledger(*dismiss, "1", "2", "77").exit_code == 1
    assert run_ledger(*dismiss, "--account", "acme", "--dry-run").stdout == "3 rows would be dismissed\n"
    assert rows_of("SELECT count(*) FROM quarantine WHERE resolution IS NOT NULL") == [(0,)]
    one, two, three = (number for (number,) in rows_of("SELECT quarantine_id FROM quarantine WHERE reason = 'usage_missing' ORDER BY 1"))
    assert run_ledger(*dismiss, str(three), str(one)).stdout == f"{one} dismissed\n{three} dismissed\n"
    assert run_ledger(*dismiss, str(one), str(two)).stdout == f"{one} was resolved before\n{two} dismissed\n"
    done = run_ledger(*dismiss, "--refused-for", "negative_tokens", "--format", "json")
    assert json.loads(done.stdout) == {"dry_run": False, "dismissed": [10 - one - two - three], "resolved_before": []}


def test_a_row_that_lacks_several_fields_says_all_of_them_and_what_is_repaired_most_stands_first(tmp_path: Path, run_ledger: Run) -> None:
    lines = ["acme,a,m,2026-05-06T10:00:00Z,1,,", "acme,,,2026-05-06T10:00:00Z,1,1,1", ",,,,1,1,1", "acme,b,m,2026-05-06T10:00:00Z,1,4,"]
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", lines))
    table = run_ledger("quarantine", "export", "--output", "-").stdout
    assert {one["detail"] for one in exported(table)} == {
        "input_tokens and output_tokens are empty, with status 200",
        "request_id and model are empty",
        "account and request_id and model and received_at are empty",
        "output_tokens is empty, with status 200",
    }
    assert table.splitlines()[0].replace('"', "").split(",")[:10] == [
        "quarantine_id", "reason", "detail", "account", "request_id", "model", "received_at",
        "input_tokens", "cached_input_tokens", "output_tokens",
    ]  # fmt: skip


def test_a_row_of_another_mapping_is_shown_in_canonical_columns_and_read_as_before(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    mapping = tmp_path / "gateway.yaml"
    mapping.write_text(MAPPING)
    lines = [
        {"tenant": "acme", "trace": "t1", "model": "M", "at": "1777975200000", "took": "0.1", "waited": "1500", "prompt": 10},
        {"tenant": "acme", "trace": "t2", "model": "M", "at": "1777975200000", "took": "soon", "prompt": 10, "completion": 3},
        {"tenant": "acme", "trace": "t3", "model": "M", "at": "yesterday", "prompt": 10, "completion": 3},
    ]
    for name in ("x", "y"):
        content = "\n".join(json.dumps(line | {"trace": f"{line['trace']}{name}"}) for line in lines) + ("\n" if name == "y" else "")
        (tmp_path / f"{name}.jsonl").write_text(content)
        run_ledger("ingest", "--mapping", mapping, tmp_path / f"{name}.jsonl")
    assert run_ledger("quarantine", "export", "--output", "-").exit_code == 1  # without the mapping nobody can read them
    table = exported(run_ledger("quarantine", "export", "--mapping", mapping, "--output", "-").stdout)
    assert [one["request_id"] for one in table] == [f"t{place}{name}/{name}/{place}" for name in "xy" for place in (1, 2, 3)]
    first, second, third = table[:3]
    assert {name: text for name, text in first.items() if text and name in CANONICAL_COLUMNS} == {
        "account": "acme", "request_id": "t1x/x/1", "model": "m", "received_at": "2026-05-05T10:00:00Z", "e2e_s": "0.1", "queue_us": "2",
        "input_tokens": "10",
    }  # fmt: skip
    assert (second["e2e_s"], third["received_at"]) == ("soon", "yesterday")
    values = ["--set", "e2e_ms=90", "--set", "received_at=2026-05-06T10:00:00Z", "--set", "output_tokens=9"]
    files = [run_ledger("quarantine", "requeue", "--file", file, "--mapping", mapping, *values) for file in ("x.jsonl", "y.jsonl")]
    assert [done.exit_code for done in files] == [0, 0]
    stored = rows_of("SELECT request_id, e2e_us, queue_us, output_tokens, source FROM event JOIN batch USING (batch_id) ORDER BY 1")
    assert [one[0] for one in stored] == sorted(f"t{place}{name}/{name}/{place}" for name in "xy" for place in (1, 2, 3))
    assert stored[0][1:] == (90_000, 2, 9, "x.jsonl") and stored[1][4] == "y.jsonl"


HOSTILE = ["=HYPERLINK(0)", "@x", "+1+1", "-2+3", "'tis", "-12.34", '\u202e;=1,"2"', "\t=1"]


def test_a_table_goes_out_defused_and_comes_back_as_it_was(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    file = tmp_path / "rows.jsonl"
    row_of = {"account": "acme", "model": "m", "received_at": "2026-05-06T10:00:00Z", "input_tokens": "1"}
    file.write_text("\n".join(json.dumps(row_of | {"request_id": text, "node": text}) for text in HOSTILE))
    run_ledger("ingest", file)
    table = tmp_path / "table.csv"
    assert run_ledger("quarantine", "export", "--output", table).stderr == f"8 rows written to {table}\n"
    rows = exported(table.read_text())
    assert [one["request_id"] for one in rows] == [text if text.startswith(("\u202e", "-12")) else f"'{text}" for text in HOSTILE]
    assert not any(one[:1] in ("=", "+", "@", "\t") for line in rows for one in line.values())
    mistaken = run_ledger("ingest", table)
    assert mistaken.exit_code == 1 and f"ledger quarantine requeue --from {table}" in mistaken.stderr
    untouched = run_ledger("quarantine", "requeue", "--from", table)
    assert (untouched.exit_code, untouched.stdout) == (0, "") and "8 rows left alone" in untouched.stderr
    rows[-1] |= {"output_tokens": "7", "node": "n;1"}
    rows[0]["output_tokens"] = "x"
    for one in rows[1:-1]:
        one["output_tokens"] = "5"
    rows[1]["request_id"] = "@x"  # the spreadsheet took the apostrophe away
    with table.open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "note"], delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    done = run_ledger("quarantine", "requeue", "--from", table, "--reason", "found")
    assert done.exit_code == 1 and f"{rows[0]['quarantine_id']} bad_number: output_tokens is 'x'" in done.stdout
    assert rows_of('SELECT request_id, node, output_tokens FROM event ORDER BY output_tokens, request_id COLLATE "C"') == [
        *sorted((text, text, 5) for text in HOSTILE[1:-1]),
        (HOSTILE[-1], "n;1", 7),
    ]
    assert rows_of("SELECT values_set FROM resubmission JOIN quarantine USING (quarantine_id) WHERE quarantine.request_id = '@x'") == [
        ({"output_tokens": "5"},)
    ]
    lines = run_ledger("quarantine", "export", rows[0]["quarantine_id"], "--format", "jsonl", "--output", "-").stdout
    assert json.loads(lines)["request_id"] == HOSTILE[0]
    again = tmp_path / "again.jsonl"
    again.write_text(json.dumps({"quarantine_id": int(rows[0]["quarantine_id"]), "output_tokens": 5}))
    assert run_ledger("quarantine", "requeue", "--from", again, "--dry-run").stdout == f"{rows[0]['quarantine_id']} accepted\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id,output_tokens\n1,5\n", "the columns id, output_tokens"),
        (b"quarantine_id,output_tokens\n1,5\n1,6\n", "row 1 a second time"),
        (b"quarantine_id,output_tokens\n99,5\n", "no row 99"),
        (b"quarantine_id,output_tokens\n1e3,5\n", "the quarantine_id is '1e3'"),
        (b"quarantine_id,output_tokens\n1,5,6\n", "table:2: 3 cells under 2 columns"),
        (b'quarantine_id,output_tokens\n1,"5\n', "unexpected end of data"),
        (b"quarantine_id,node\n1,\xff\n", "not UTF-8"),
        (b"quarantine_id,node\n1,a\0b\n", "NUL"),
        (b"quarantine_id,node\n1," + b"x" * 10_000 + b"\n", "a text of 10,000 characters"),
        (b'{"quarantine_id": 1, "node": "\\ud800"}', "node is no text"),
        (b'{"quarantine_id": 1, "node": {}}', "node is no text"),
        (b'{"quarantine_id": 1,', "table:1: no JSON"),
        (b"", "the columns "),
    ],
)
def test_a_table_that_is_none_changes_nothing(tmp_path: Path, database_of_one: Run, content: bytes, said: str) -> None:
    (tmp_path / "table").write_bytes(content)
    done = database_of_one("quarantine", "requeue", "--from", tmp_path / "table")
    assert done.exit_code == 1 and said in done.stderr and "defect" not in done.stderr


@pytest.fixture(scope="module")
def database_of_one(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The `ledger` command on a database with one refused row."""
    with fresh_database(server) as url:

        def run(*arguments: Any) -> Any:
            return CliRunner().invoke(cli, list(map(str, arguments)), env={"LEDGER_DATABASE_URL": url}, prog_name="ledger")

        run("ingest", write_rows(tmp_path_factory.mktemp("one") / "one.csv", [refused("a")]))
        yield run


def test_two_who_send_the_same_row_in_at_once_get_one_event_and_no_error(
    tmp_path: Path, run_ledger: Run, rows_of: Query, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.quarantine.PIECE_ROWS", 7)
    rows = [refused(f"r{number}") for number in range(40)]
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", rows))

    def send(author: str) -> list[str]:
        wanted, names = RowFilter(ids=range(1, 41)), UnknownNames(database)
        done = requeue_rows(database, wanted, values={"output_tokens": "5"}, reason="test", author=author, names=names)
        return [one.outcome for one in done]

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(send, "abcd"))
    assert sorted({outcome for some in outcomes for outcome in some}) == ["accepted", "resolved"]
    assert sum(some.count("accepted") for some in outcomes) == 40
    assert rows_of("SELECT count(*), count(DISTINCT request_id) FROM event") == [(40, 40)]
    assert rows_of("SELECT count(*) FROM resubmission") == [(40,)]
    assert verify_cells(database).accounts == ()


def test_rows_that_say_the_same_are_accepted_once_also_in_a_dry_run(
    tmp_path: Path, run_ledger: Run, rows_of: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.quarantine.PIECE_ROWS", 1)
    run_ledger(
        "ingest", write_rows(tmp_path / "rows.csv", [refused("a"), refused("a", tokens="x"), row("acme", "").replace("10,5", "9,9")])
    )
    send = ["quarantine", "requeue", "--file", "rows.csv", "--set", "output_tokens=5", "--set", "request_id=a"]
    numbers = [number for (number,) in rows_of("SELECT quarantine_id FROM quarantine ORDER BY line")]
    told = ("accepted", "is stored already", "conflict: differs from the stored row in input_tokens")
    expected = "".join(f"{number} {what}\n" for number, what in zip(numbers, told, strict=True))
    assert run_ledger(*send, "--dry-run").stdout == expected
    assert run_ledger(*send).stdout == expected


def test_a_line_that_is_no_record_can_be_sent_in_when_its_columns_are_set(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row(), "a,b"]), "--account", "acme")
    done = run_ledger("quarantine", "requeue")
    assert (done.exit_code, "1 bad_text: nothing of the line could be kept" in done.stdout) == (1, True)
    values = ["account=acme", "request_id=b", "model=m", "received_at=2026-05-06T10:00:00Z", "input_tokens=1", "output_tokens=1"]
    assert run_ledger("quarantine", "requeue", "1", *(part for value in values for part in ("--set", value))).stdout == "1 accepted\n"
    assert exported(run_ledger("quarantine", "export", "--output", "-").stdout) == []
    assert rows_of("SELECT request_id FROM event ORDER BY 1") == [("b",), ("r",)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["1", "--set", "nope=1"],
        ["1", "--set", "node"],
        ["1", "--set", "node=a", "--set", "node=b"],
        ["1", "--from", "x"],
        ["--set", "node=a"],
        ["--from", "x", "--set", "node=a"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_set_is_wrong_usage(database_of_one: Run, arguments: list[str]) -> None:
    assert database_of_one("quarantine", "requeue", *arguments).exit_code == 2


def test_every_column_that_can_be_exported_can_be_set() -> None:
    mapping = built_in_mappings()["canonical"]
    assert {path[0] for path in mapping.paths} == set(CANONICAL_COLUMNS)


def test_rows_that_others_met_are_repaired_in_a_table_and_sent_by_the_client_again(tmp_path: Path, run_ledger: Run, rows_of: Query) -> None:
    good = {"account": "x", "model": "m", "received_at": "2026-05-06T10:00:00Z", "input_tokens": 20_000, "output_tokens": 5}
    rows = [
        good | {"request_id": "a"}, good | {"request_id": "a", "output_tokens": 30}, good | {"request_id": ""},
        good | {"request_id": "n\0"}, good | {"request_id": "half", "node": "\ud800"},
        good | {"request_id": "c", "cached_input_tokens": 80_000}, good | {"request_id": "e", "e2e_ms": -200},
    ]  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load = ["ingest", file, "--format", "json"]
    before = json.loads(run_ledger(*load).stdout)["total"]
    assert (before["new"], before["conflict"], before["refused"]) == (1, 1, 5)
    table = tmp_path / "table.csv"
    run_ledger("quarantine", "export", "--output", table)
    repaired = exported(table.read_text())
    by_line = dict(rows_of("SELECT line, quarantine_id::text FROM quarantine"))
    changes: dict[int, dict[str, object]] = {
        3: {"request_id": "b"}, 4: {"request_id": "n"}, 5: good | {"request_id": "half"}, 6: {"cached_input_tokens": 8000},
        7: {"e2e_ms": 200},
    }  # fmt: skip
    for line, changed in changes.items():
        next(one for one in repaired if one["quarantine_id"] == by_line[line]).update({name: str(value) for name, value in changed.items()})
    with table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(repaired[0]))
        writer.writeheader()
        writer.writerows(repaired)
    done = run_ledger("quarantine", "requeue", "--from", table, "--reason", "repaired", "--format", "json")
    assert {one["id"]: one["outcome"] for one in json.loads(done.stdout)} == {int(by_line[line]): "accepted" for line in changes}
    events = rows_of("SELECT request_id, cached_input_tokens, e2e_us FROM event ORDER BY request_id")
    assert events == [("a", 0, None), ("b", 0, None), ("c", 8000, None), ("e", 0, 200_000), ("half", 0, None), ("n", 0, None)]
    again = json.loads(run_ledger(*load).stdout)["total"]
    assert (again["new"], again["duplicate"], again["conflict"], again["refused"]) == (0, 1, 1, 5)
    assert rows_of("SELECT reason FROM quarantine WHERE resolution IS NULL") == [("conflict",)]
    assert run_ledger("quarantine", "requeue").stdout == f"{by_line[2]} conflict: differs from the stored row in output_tokens\n"


@pytest.mark.parametrize("again", [False, True])
def test_a_row_whose_account_and_id_another_mapping_has_read_is_in_the_history_of_the_request(
    again: bool, tmp_path: Path, run_ledger: Run, listed: Callable[..., list[dict[str, Any]]]
) -> None:
    for name, account, request_id in (("read", "team", "id"), ("other", "tenant", "id || '-x'")):
        (tmp_path / f"{name}.yaml").write_text(TEAMS.format(account=account, request_id=request_id))
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"id": "t", "tenant": "acme", "at": "2026-05-06T10:00:00Z", "in": 1, "out": 2}) + "\n")
    assert "1 refused" in run_ledger("ingest", "--mapping", tmp_path / "read.yaml", file).stdout
    if again:  # it is stored by then
        assert "1 new" in run_ledger("ingest", "--mapping", tmp_path / "other.yaml", "--again", file).stdout
    sent = run_ledger("quarantine", "requeue", "--file", "rows.jsonl", "--mapping", tmp_path / "other.yaml", "--reason", "the right fields")
    assert sent.exit_code == 0, sent.output
    history = json.loads(run_ledger("explain", "t-x", "--format", "json").stdout)
    assert (history["account"], history["counts"]) == ("acme", True)
    assert [(one["reason"], one["resolution"]) for one in history["quarantine"]] == [("missing_field", "requeued")]
    [row_of_t] = listed("--account", "acme", "--request-id", "t-x", "--state", "resolved")
    outcome = "is stored already" if again else "accepted"
    assert f"under the mapping teams: {outcome}, as acme t-x\n" in run_ledger("quarantine", "show", str(row_of_t["id"])).stdout
    assert listed("--account", "other", "--state", "all") == []
