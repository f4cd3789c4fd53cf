"""A gateway's row and an engine's are one request, whichever comes first, and nothing a client chooses can make two of them one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.store.database import Database
from ledger.workflows.correct import correct_request
from tests.ingest.halves import Halves, engine, gateway, written
from tests.ingest.sample_rows import MAPPINGS, write_rows

JOINED = ("00:00.000", 10_000, 400_000, None, 500_000, 100, 20, 200)  # of gateway("g") and engine(..., "g")


def counts(totals: dict[str, Any]) -> dict[str, int]:
    """The parts of the total that are not 0."""
    names = ("new", "duplicate", "conflict", "refused", "merged")
    assert totals["read"] == sum(totals[name] for name in names) + sum(totals["skipped"].values())
    return {name: totals[name] for name in names if totals[name]}


def test_a_row_without_tokens_waits_in_quarantine_until_its_engine_comes(halves: Halves) -> None:
    assert counts(halves.load(gateway("g"))) == {"refused": 1}
    assert halves.current() == {}
    assert counts(halves.load(gateway("g"))) == {"refused": 1}
    assert counts(halves.load(engine("s", "g"))) == {"merged": 1}
    assert halves.current() == {"g": JOINED}
    assert halves.query("SELECT reason, resolution, resolution_reason FROM quarantine") == [
        {"reason": "usage_missing", "resolution": "joined", "resolution_reason": "joined"}
    ]
    assert counts(halves.load(gateway("g"))) == {"duplicate": 1}
    assert counts(halves.load(engine("s", "g"))) == {"duplicate": 1}
    assert halves.unjoined() == []


def test_an_engine_that_comes_first_waits_for_its_gateway(halves: Halves) -> None:
    assert counts(halves.load(engine("s", "g"), engine("t", "nobody"))) == {"merged": 2}
    assert halves.current() == {}
    loaded = halves.load(gateway("g"))
    assert counts(loaded) == {"new": 1}
    assert loaded["earliest"] == loaded["latest"] == "2026-05-06T10:00:00Z"
    assert halves.report["files"][0]["unassigned"] == {"acme": 1}
    assert halves.current() == {"g": JOINED}
    assert halves.query("SELECT count(*) FROM quarantine") == [{"count": 0}]
    assert halves.unjoined() == ["t/nobody"]


def test_a_half_that_comes_later_makes_a_revision_with_the_reason(halves: Halves) -> None:
    halves.load(gateway("g", **{"in": 7, "out": 8}))
    assert halves.current()["g"] == ("00:00.000", None, None, None, 500_000, 7, 8, 200)
    halves.load(engine("s", "g"))
    assert halves.current() == {"g": JOINED}
    assert halves.query("SELECT revision, kind, reason FROM void") == [{"revision": 1, "kind": "join", "reason": "joined"}]
    assert halves.run_ledger("verify", "--cells").exit_code == 0


def test_a_load_says_how_many_requests_have_their_engines_figures_by_it(halves: Halves) -> None:
    rows = [gateway(f"g{n}", n, call=f"c{n}", trace=f"t{n}") for n in range(6)]
    tokens = {"in": 7, "out": 8}
    assert halves.load(*rows[:3], rows[3] | tokens)["joined"] == 0
    spans = [engine(f"s{n}", f"g{n}", n, trace=f"t{n}") for n in range(6)]
    spans[2] |= {"run_ms": 900}  # contradicts its gateway's row
    assert halves.load(*spans[:5])["joined"] == 3
    assert halves.load(*spans[:5])["joined"] == 0
    assert halves.load(engine("second", "g0", trace="t0"))["joined"] == 0  # another choice of one that is joined
    assert halves.load(gateway("a", 0, call="c0", trace="t0"))["joined"] == 0  # another row of its answer
    assert halves.load(rows[4], rows[5] | tokens)["joined"] == 1
    assert halves.run_ledger("correct", "g5", "--account", "acme", "--set", "output_tokens=9", "--reason", "meter").exit_code == 0
    assert halves.load(*spans[5:])["joined"] == 0  # somebody has decided about it
    assert [name for name, row in halves.current().items() if row[1] is not None] == ["a", "g1", "g3", "g4"]
    assert halves.query("SELECT sum(requests_joined)::int AS n FROM batch") == [{"n": 4}]


def test_choices_are_one_request_with_the_prompt_once_and_the_slowest_ones_time(halves: Halves) -> None:
    choices = [engine(f"s{run_ms}", "g", trace="t", run_ms=run_ms, out=out) for run_ms, out in ((300, 5), (480, 6), (200, 7))]
    halves.load(choices[0])
    halves.load(gateway("g"))
    halves.load(*choices[1:])
    assert halves.current() == {"g": ("00:00.000", 10_000, 480_000, None, 500_000, 100, 18, 200)}


def test_two_engine_requests_under_one_header_of_a_client_stay_unjoined(halves: Halves) -> None:
    halves.load(engine("s", "g"), engine("s", "g"), engine("t", "g"))
    halves.load(gateway("g"), gateway("h", 1, code=500))
    assert list(halves.current()) == ["h"]
    assert halves.unjoined() == ["s/g", "t/g"]
    assert "; where several share a trace or header, none is joined\n" in halves.run_ledger("status").stdout


def test_a_header_sent_again_undoes_no_join_and_a_trace_tells_them_apart(halves: Halves) -> None:
    halves.load(gateway("g"))
    halves.load(engine("s", "g"))
    halves.load(engine("t", "g", 5), gateway_free := engine("u", "x", 5, trace="t1"))
    assert halves.current() == {"g": JOINED}
    halves.load(gateway("x1", 5, header="x", trace="t1"), gateway("x2", 5, header="x", trace="t2"))
    assert list(halves.current()) == ["g", "x1"]
    assert halves.unjoined() == ["t/g"]
    assert gateway_free["trace"] == "t1"


def test_the_same_header_on_another_day_is_another_request(halves: Halves) -> None:
    later = {"at": "2026-05-07T10:00:00Z"}
    halves.load(gateway("g1", header="h"), gateway("g2", header="h") | later)
    halves.load(engine("s1", "h"), engine("s2", "h") | later)
    assert list(halves.current()) == ["g1", "g2"] and halves.unjoined() == []


def test_another_customers_gateway_row_with_the_same_header_takes_nothing(halves: Halves) -> None:
    halves.load(engine("s", "h"))
    halves.load(gateway("g1", header="h"), gateway("g2", header="h", customer="northwind"))
    assert halves.current() == {} and halves.unjoined() == ["s/h"]


def test_halves_whose_times_contradict_each_other_stay_apart(halves: Halves) -> None:
    halves.load(gateway("g", ms=300, **{"in": 7, "out": 8}))
    halves.load(engine("s", "g", run_ms=400))
    assert halves.current() == {"g": ("00:00.000", None, None, None, 300_000, 7, 8, 200)}
    assert halves.unjoined() == ["s/g"]


def test_failed_tries_and_a_row_that_was_logged_twice_are_one_request(halves: Halves) -> None:
    answer = {"in": 7, "out": 8, "first_ms": 100}
    rows = [
        gateway("f1", 0, call="c", code=500), gateway("f2", 1, call="c", code=429), gateway("a", 2, call="c", **answer),
        gateway("b", 2, call="c", ms=501, **answer),
    ]  # fmt: skip
    whole = {"a": ("00:00.000", None, None, 2_100_000, 2_501_000, 7, 8, 200)}
    assert counts(halves.load(*rows)) == {"new": 1, "merged": 3}
    assert halves.current() == whole
    for one in (rows[0], rows[2]):
        assert counts(halves.load(one)) == {"duplicate": 1}
    assert halves.current() == whole


def test_tries_that_come_last_first_end_as_one_request(halves: Halves) -> None:
    answer = gateway("a", 2, call="c", **{"in": 7, "out": 8})
    for row in (gateway("f2", 1, call="c", code=502), answer, gateway("f1", 0, call="c", code=500)):
        halves.load(row)
    assert halves.current() == {"a": ("00:00.000", None, None, None, 2_500_000, 7, 8, 200)}
    assert halves.run_ledger("verify", "--cells").exit_code == 0


def test_a_client_that_sends_its_call_id_again_is_served_twice_and_pays_twice(halves: Halves) -> None:
    halves.load(gateway("a", 0, call="c", **{"in": 7, "out": 8}), gateway("b", 3, call="c", **{"in": 7, "out": 8}))
    assert [row[-3:] for row in halves.current().values()] == [(7, 8, 200)] * 2


def test_an_engines_figures_stay_with_the_answer_that_had_them_first_and_count_once(halves: Halves) -> None:
    halves.load(gateway("b", 1, call="c", header="h"))
    halves.load(engine("s", "h"))
    before = halves.current()
    assert list(before) == ["b"]
    assert counts(halves.load(gateway("a", 0, call="c", header="h"))) == {"refused": 1}
    assert halves.current() == before


def test_an_engines_figures_go_to_the_answer_that_lacks_tokens(halves: Halves) -> None:
    halves.load(gateway("a", 0, call="c", header="h", **{"in": 7, "out": 8}))
    halves.load(engine("s", "h"))
    assert halves.current()["a"][5:7] == (100, 20)
    halves.load(gateway("b", 1, call="c", header="h"))
    assert {name: row[5:7] for name, row in halves.current().items()} == {"a": (7, 8), "b": (100, 20)}


def test_figures_that_somebody_has_decided_about_go_to_no_other_answer(halves: Halves) -> None:
    halves.load(gateway("b", 1, call="c", header="h"))
    halves.load(engine("s", "h"))
    result = halves.run_ledger("correct", "b", "--account", "acme", "--set", "e2e_ms=450", "--reason", "clock")
    assert result.exit_code == 0, result.output
    before = halves.current()
    halves.load(gateway("a", 0, call="c", header="h"), gateway("B", 1, call="c", header="h"))  # B: the answer of b, logged twice
    assert halves.current() == before


def test_a_clients_own_error_is_no_try_and_makes_the_next_answer_no_later(halves: Halves) -> None:
    halves.load(gateway("e", 0, call="c", code=400), gateway("a", 3, call="c", **{"in": 7, "out": 8}))
    assert halves.current()["a"][0] == "00:03.000" and halves.current()["e"][-1] == 400


@pytest.mark.parametrize("command", [("void", "g"), ("correct", "g", "--set", "output_tokens=9")])
def test_what_somebody_decided_is_not_formed_again(command: tuple[str, ...], halves: Halves) -> None:
    halves.load(gateway("g", **{"in": 7, "out": 8}))
    assert halves.run_ledger(*command, "--reason", "agreed with the customer").exit_code == 0
    before = halves.current()
    halves.load(engine("s", "g"))
    assert halves.current() == before


def test_a_row_under_an_id_with_other_content_is_a_conflict(halves: Halves) -> None:
    halves.load(gateway("g", code=500))
    assert counts(halves.load(gateway("g", code=503))) == {"conflict": 1}
    assert halves.query("SELECT detail FROM quarantine") == [{"detail": "differs from the stored row in status"}]


@pytest.mark.parametrize(("first", "second"), [(500, 600), (600, 500)])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_second_of_two_rows_under_an_id_that_wait_for_tokens_is_a_conflict(
    first: int, second: int, at_once: bool, halves: Halves
) -> None:
    rows = [gateway("g", ms=first), gateway("g", ms=second)]
    loads = [rows] if at_once else [rows[:1], rows[1:]]
    told = [counts(halves.load(*one)) for one in loads]
    assert told == ([{"conflict": 1, "refused": 1}] if at_once else [{"refused": 1}, {"conflict": 1}])
    assert [counts(halves.load(row)) for row in rows] == [{"refused": 1}, {"conflict": 1}]
    waiting = "SELECT reason, detail FROM quarantine WHERE resolution IS NULL ORDER BY reason"
    conflict = {"reason": "conflict", "detail": "differs from the stored row in e2e_us"}
    assert [row["reason"] for row in halves.query(waiting)] == ["conflict", "usage_missing"]
    assert requeued(halves, "--account", "acme") == ["usage_missing", "conflict"]
    halves.load(engine("s", "g"))
    assert halves.current()["g"][4] == first * 1000 and halves.query(waiting) == [conflict]
    assert [counts(halves.load(row)) for row in rows] == [{"duplicate": 1}, {"conflict": 1}]
    assert halves.query(waiting) == [conflict]


def test_rows_that_wait_and_rows_in_conflict_are_kept_with_their_fields_and_rows_that_are_joined_are_not(halves: Halves) -> None:
    halves.load(engine("s", "g"))
    halves.load(gateway("c", code=500))
    assert counts(halves.load(gateway("g"), gateway("h", 1), gateway("c", code=503))) == {"new": 1, "conflict": 1, "refused": 1}
    kept = halves.query("SELECT line, reason, fields->>'id' AS id, fields->>'code' AS code FROM quarantine ORDER BY line")
    assert kept == [
        {"line": 2, "reason": "usage_missing", "id": "h", "code": "200"}, {"line": 3, "reason": "conflict", "id": "c", "code": "503"},
    ]  # fmt: skip


def test_a_request_that_came_as_a_whole_before_is_the_one_that_stands(halves: Halves, tmp_path: Path) -> None:
    halves.run_ledger("ingest", write_rows(tmp_path / "whole.csv", ["acme,g,m,2026-05-06T10:00:00Z,90000,7,8"]))
    assert counts(halves.load(gateway("g", **{"in": 7, "out": 8}))) == {"conflict": 1}
    halves.load(engine("s", "g"))
    assert halves.current()["g"] == ("00:00.000", None, 90_000, None, None, 7, 8, 200)


def test_ten_rows_and_eight_spans_are_ten_requests_two_of_them_cancelled(halves: Halves) -> None:
    halves.load(*(engine(f"s{n}", f"g{n}", n) for n in range(8)), engine("s0", "g0", 0))
    halves.load(*(gateway(f"g{n}", n) for n in range(8)), gateway("g8", ms=120, code=499), gateway("g9", ms=2000, code=499))
    assert len(halves.current()) == 10
    assert [halves.current()[name][4:] for name in ("g8", "g9")] == [(120_000, None, None, 499), (2_000_000, None, None, 499)]


def test_halves_that_wait_are_counted_when_the_month_is_settled(halves: Halves, shared: Path) -> None:
    contract = shared / "cases" / "no-traffic" / "contract.yaml"
    assert halves.run_ledger("contract", "add", contract).exit_code == 0
    halves.load(engine("s", "nobody"))
    result = halves.run_ledger("settle", "2026-05", "--format", "json", now="2026-06-15T00:00:00Z")
    assert json.loads(result.stdout)[0]["unresolved"]["unjoined"] == 1


def _load(files: list[tuple[str, Path]], database_url: str, fault: str = "") -> list["subprocess.Popen[bytes]"]:
    environment = {**os.environ, "LEDGER_DATABASE_URL": database_url, "LEDGER_FAULT": fault, "LEDGER_CHUNK_ROWS": "7"}
    return [
        subprocess.Popen(
            [sys.executable, "-m", "ledger", "ingest", "--mapping", str(MAPPINGS / f"{role}-half.yaml"), str(file)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for role, file in files
    ]  # fmt: skip


def _files(folder: Path) -> list[tuple[str, Path]]:
    spans = [engine(f"s{n}", f"g{n // 2}", n // 2, trace=f"t{n // 2}", out=n) for n in range(40)]
    rows = [gateway(f"g{n}", n) for n in range(20)]
    return [
        ("engine", written(folder / "spans.jsonl", spans)), ("gateway", written(folder / "log.jsonl", rows)),
        ("gateway", written(folder / "again.jsonl", rows[::-1])), ("engine", written(folder / "some.jsonl", spans[13:31])),
    ]  # fmt: skip


def test_both_halves_loaded_at_once_meet(halves: Halves, tmp_path: Path, database_url: str) -> None:
    for process in _load(_files(tmp_path), database_url):
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    assert [row[5:7] for row in halves.current().values()] == [(100, 4 * int(name[1:]) + 1) for name in halves.current()]
    assert len(halves.current()) == 20 and halves.unjoined() == []
    assert halves.run_ledger("verify", "--cells").exit_code == 0


@pytest.mark.parametrize("step", ["ingest.after_copy:2", "ingest.after_pairs:2", "ingest.before_commit:3", "ingest.after_commit:2"])
def test_a_load_of_halves_killed_at_any_step_ends_as_if_it_had_not_been(
    step: str, halves: Halves, tmp_path: Path, database_url: str
) -> None:
    spans, log, *_ = _files(tmp_path)
    for files in ([log], [spans]):
        (process,) = _load(files, database_url, step)
        process.communicate()
        assert process.returncode == -9
        (process,) = _load(files, database_url)
        said, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
    assert "; 20 requests joined with the engine's figures; " in said.decode()
    assert len(halves.current()) == 20 and halves.unjoined() == []
    assert halves.query("SELECT count(*), count(DISTINCT record_id) AS ids FROM observation") == [{"count": 60, "ids": 60}]


# -- halves that are sent in again


TOKENS = ("--set", "input_tokens=7", "--set", "output_tokens=8")


def requeued(halves: Halves, *arguments: str, role: str = "gateway") -> list[str]:
    """What became of each row that was sent in again."""
    mapping = MAPPINGS / f"{role}-half.yaml"
    done = halves.run_ledger("quarantine", "requeue", "--mapping", mapping, "--format", "json", *arguments)
    return [one["outcome"] for one in json.loads(done.stdout)]


def test_a_gateways_row_repaired_with_tokens_is_a_request_that_its_engine_does_not_overrule(halves: Halves) -> None:
    halves.load(gateway("g"))
    assert requeued(halves) == ["usage_missing"]
    tokens = ("--account", "acme", *TOKENS)
    assert requeued(halves, *tokens, "--dry-run") == ["accepted"]
    assert halves.current() == {}
    assert requeued(halves, *tokens, "--reason", "from the bill of the engine") == ["accepted"]
    assert halves.current() == {"g": ("00:00.000", None, None, None, 500_000, 7, 8, 200)}
    halves.load(engine("s", "g"))
    assert halves.current() == {"g": ("00:00.000", 10_000, 400_000, None, 500_000, 7, 8, 200)}
    assert counts(halves.load(gateway("g", **{"in": 7, "out": 8}))) == {"duplicate": 1}
    halves.load(gateway("g"))
    assert halves.current()["g"][5:7] == (7, 8)
    assert halves.query("SELECT resolution, resolution_reason FROM quarantine") == [
        {"resolution": "requeued", "resolution_reason": "from the bill of the engine"}
    ]
    history = json.loads(halves.run_ledger("explain", "g", "--format", "json").stdout)
    assert [(one["role"], one["record_id"], one["repaired"]) for one in history["halves"]] == [
        ("gateway", "g", True), ("engine", "s", False),
    ]  # fmt: skip
    assert [one["withdrawn"] and one["withdrawn"]["kind"] for one in history["revisions"]] == ["join", None]
    assert [one["resolution"] for one in history["quarantine"]] == ["requeued"]
    assert "gateway's row g\n" in halves.run_ledger("explain", "g").stdout
    assert halves.query("SELECT rows_new, rows_refused FROM batch JOIN resubmission USING (batch_id) ORDER BY batch_id") == [
        {"rows_new": 0, "rows_refused": 1}, {"rows_new": 1, "rows_refused": 0},
    ]  # fmt: skip
    assert halves.run_ledger("verify", "--cells").exit_code == 0


def test_a_repaired_try_makes_its_request_whole_from_the_first_try_on(halves: Halves) -> None:
    halves.load(gateway("f", 1, call="c", code=500), gateway("a", 3, call="c"))
    assert requeued(halves, "--account", "acme", *TOKENS) == ["accepted"]
    assert halves.current() == {"a": ("00:01.000", None, None, None, 2_500_000, 7, 8, 200)}
    halves.load(gateway("b", 3, call="c", **{"in": 7, "out": 8}))
    halves.load(gateway("e", 0, call="c", code=503))
    assert halves.current() == {"a": ("00:00.000", None, None, None, 3_500_000, 7, 8, 200)}
    assert halves.run_ledger("verify", "--cells").exit_code == 0


def test_an_engines_row_that_is_repaired_joins_and_resolves_the_row_that_waits(halves: Halves) -> None:
    halves.load(gateway("g"), gateway("h", 1))
    halves.load(engine("s", "g", out="x"))
    assert requeued(halves, "--refused-for", "bad_number", "--set", "output_tokens=20", role="engine") == ["accepted"]
    assert halves.current() == {"g": JOINED}
    assert halves.query("SELECT reason, resolution FROM quarantine ORDER BY batch_id, line") == [
        {"reason": "usage_missing", "resolution": "joined"}, {"reason": "usage_missing", "resolution": None},
        {"reason": "bad_number", "resolution": "requeued"},
    ]  # fmt: skip
    assert halves.unjoined() == []


def test_a_row_that_is_repaired_but_for_its_tokens_waits_for_its_engine(halves: Halves) -> None:
    halves.load(gateway("g", ms=-1))
    assert requeued(halves, "--account", "acme", "--set", "e2e_ms=500") == ["usage_missing"]
    halves.load(engine("s", "g"))
    assert halves.current() == {"g": JOINED}
    assert halves.query("SELECT resolution FROM quarantine") == [{"resolution": "joined"}]


@pytest.mark.parametrize("setting", ["account=other", "request_id=other"])
def test_a_half_that_waits_cannot_become_another_one(setting: str, halves: Halves) -> None:
    halves.load(gateway("g"))
    assert requeued(halves, "--account", "acme", "--set", setting, *TOKENS) == ["conflict"]
    whole = halves.folder / "whole.yaml"
    text = (MAPPINGS / "gateway-half.yaml").read_text()
    whole.write_text("".join(line for line in text.splitlines(True) if not line.startswith(("role", "record", "join"))))
    done = halves.run_ledger("quarantine", "requeue", "--account", "acme", "--mapping", whole, *TOKENS)
    assert done.exit_code == 1 and "stays the half that it is" in done.stdout
    assert halves.current() == {} and halves.query("SELECT account, repaired FROM observation") == [{"account": "acme", "repaired": False}]


def test_repairs_while_the_engine_is_loaded_leave_one_request_each(halves: Halves, tmp_path: Path, database_url: str) -> None:
    spans, log, *_ = _files(tmp_path)
    (process,) = _load([log], database_url)
    assert process.wait() == 0
    repair = [sys.executable, "-m", "ledger", "quarantine", "requeue", "--mapping", str(MAPPINGS / "gateway-half.yaml")]
    repair += ["--account", "acme", "--set", "input_tokens=1", "--set", "output_tokens=1"]
    environment = {**os.environ, "LEDGER_DATABASE_URL": database_url}
    repairing = subprocess.Popen(repair, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    (loading,) = _load([spans], database_url)
    for one in (repairing, loading):
        _, errors = one.communicate()
        assert one.returncode == 0, errors.decode()
    assert len(halves.current()) == 20 and halves.unjoined() == []
    repaired = {row["request_id"] for row in halves.query("SELECT request_id FROM observation WHERE repaired")}
    assert {name: row[5:7] for name, row in halves.current().items()} == {
        name: (1, 1) if name in repaired else (100, 4 * int(name[1:]) + 1) for name in halves.current()
    }
    assert halves.query("SELECT count(*) FROM quarantine WHERE resolution IS NULL") == [{"count": 0}]
    assert halves.run_ledger("verify", "--cells").exit_code == 0


def test_corrections_while_the_engine_is_loaded_stand(halves: Halves, tmp_path: Path, database_url: str, database: Database) -> None:
    spans, *_ = _files(tmp_path)
    halves.load(*(gateway(f"g{n}", n, **{"in": 7, "out": 8}) for n in range(20)))
    (loading,) = _load([spans], database_url)
    for n in range(20):
        correct_request(database, f"g{n}", {"output_tokens": "9"}, account="acme", reason="test", author="test")
    _, errors = loading.communicate()
    assert loading.returncode == 0, errors.decode()
    assert [row[6] for row in halves.current().values()] == [9] * 20
    assert halves.run_ledger("verify", "--cells").exit_code == 0
