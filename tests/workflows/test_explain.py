"""A request is found by its own id and by those of its rows, and nobody is told of another request than the one that is meant."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from psycopg.sql import SQL

from ledger.ingest import mapping_file
from ledger.store import other_ids
from ledger.store.connection import Connection, fetch, fetch_as
from ledger.store.database import Database
from ledger.store.other_ids import ENGINE_PREFIXES, requests_by_other_id
from tests.ingest.halves import Halves, engine, gateway
from tests.ingest.sample_rows import MAPPINGS, row, write_rows

FORMATS = Path(mapping_file.__file__).parent / "formats"
TOKENS = {"in": 7, "out": 8}


def explained(halves: Halves, *arguments: str) -> dict[str, Any]:
    """The history, as a program reads it."""
    result = halves.run_ledger("explain", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    history: dict[str, Any] = json.loads(result.stdout)
    return history


def named(halves: Halves, *arguments: str) -> tuple[Any, ...]:
    """Whose request is told, its id, by what it was found, and whether it counts."""
    history = explained(halves, *arguments)
    return tuple(history[name] for name in ("account", "request_id", "found_by", "counts"))


def test_a_request_is_found_by_any_id_of_its_rows(halves: Halves) -> None:
    halves.load(gateway("try", call="c", code=500, header="h1", trace="t1"))
    assert named(halves, "c") == ("acme", "try", "request_id", True)
    halves.load(gateway("answer", 2, call="c", header="h2", trace="t2", **TOKENS))
    halves.load(engine("span", "h2", 2.01, trace="t2"))
    ways = {
        "answer": None, "span": "record_id", "c": "request_id", "t2/h2": "request_id", "t1": "trace", "t2": "trace", "h1": "header",
        "h2": "header",
    }  # fmt: skip
    assert {one: named(halves, one) for one in ways} == {one: ("acme", "answer", way, True) for one, way in ways.items()}
    assert named(halves, "try") == ("acme", "try", None, False)
    assert explained(halves, "t1") == explained(halves, "answer") | {"found_by": "trace", "found_as": "t1"}
    assert halves.run_ledger("explain", "t2").stdout.splitlines()[:2] == ["acme answer counts, in revision 2", "found by its trace t2"]
    assert halves.run_ledger("explain", "answer").stdout.splitlines()[1].startswith("revision 1")


def test_a_row_that_waits_is_found_with_the_reason_why_it_is_no_request_yet(halves: Halves) -> None:
    halves.load(gateway("g", call="c", header="h"))
    for asked, way in (("g", None), ("c", "request_id"), ("h", "header")):
        history = explained(halves, asked)
        assert (history["request_id"], history["found_by"], history["revisions"]) == ("g", way, [])
        assert [one["record_id"] for one in history["halves"]] == ["g"]
        assert [(one["reason"], one["resolution"]) for one in history["quarantine"]] == [("usage_missing", None)]
    assert "    line 1 of gateway-1.jsonl under" in halves.run_ledger("explain", "g").stdout
    halves.run_ledger("quarantine", "dismiss", "--account", "acme", "--reason", "test traffic")
    assert [one["resolution"] for one in explained(halves, "c")["quarantine"]] == ["dismissed"]


def test_an_answer_that_was_logged_twice_is_found_by_the_id_of_either_row(halves: Halves) -> None:
    halves.load(gateway("g1", call="c", header="h"), gateway("g2", call="c", header="h"))
    halves.load(engine("s", "h"))
    assert named(halves, "g2") == ("acme", "g1", "record_id", True)
    assert [(one["request_id"], one["resolution"]) for one in explained(halves, "g2")["quarantine"]] == [("g1", "joined"), ("g2", "joined")]


def test_an_engines_rows_lead_to_the_answer_that_has_their_figures(halves: Halves) -> None:
    halves.load(gateway("a", call="c", header="h"), gateway("b", 300, call="c", header="i", **TOKENS))
    halves.load(engine("s", "h"))
    assert named(halves, "s") == ("acme", "a", "record_id", True)
    assert named(halves, "s/h") == ("acme", "a", "request_id", True)
    assert named(halves, "i") == ("acme", "b", "header", True)
    assert halves.run_ledger("explain", "c").stderr.splitlines()[1:3] == ["  acme  a  (its call id)", "  acme  b  (its call id)"]


def test_halves_that_contradict_each_other_say_so_with_the_figures_and_the_cure(halves: Halves) -> None:
    halves.load(gateway("counts", ms=300, **TOKENS), gateway("waits", 1, ms=300), gateway("joins", 2))
    halves.load(engine("s", "counts", run_ms=301), engine("t", "waits", 1.01, run_ms=400), engine("u", "joins", 2.01))
    told = halves.run_ledger("explain", "counts").stdout.splitlines()
    assert told[told.index("its halves are both there and stay apart: the gateway's counts and the engine's s/counts") :] == [
        "its halves are both there and stay apart: the gateway's counts and the engine's s/counts",
        "  times contradict: queue_us=10000 and inference_us=301000 exceed e2e_us=300000 by more than 10000",
        "  the gateway's half counts as it is; if it is wrong:",
        "  ledger correct counts --account acme --set FIELD=VALUE --reason TEXT",
        "  ledger void counts --account acme --reason TEXT",
        "not billed now: no contract covers the account acme at that time: nothing is billed of it",
    ]
    assert explained(halves, "joins")["kept_apart"] is None
    [waits] = explained(halves, "waits")["quarantine"]
    cure = f"quarantine requeue {waits['id']} --set input_tokens=100 --set output_tokens=20 --set e2e_ms=NUMBER --reason TEXT"
    for command in (("explain", "t"), ("quarantine", "show", str(waits["id"]))):
        told = halves.run_ledger(*command).stdout.splitlines()
        assert "  times contradict: queue_us=10000 and inference_us=400000 exceed e2e_us=300000 by more than 10000" in told
        assert f"  ledger {cure}" in told
    waiting = " ".join(halves.run_ledger("status").stdout.split())
    assert "pairs of halves that cannot be joined 2 ledger explain s/counts (the first) says why" in waiting
    assert "engines' requests without a gateway's" not in waiting
    status = json.loads(halves.run_ledger("status", "--format", "json").stdout)
    assert (status["unjoined"], status["kept_apart"]) == (2, 2)
    repaired = cure.replace("NUMBER", "420").split()
    assert halves.run_ledger(*repaired, "--mapping", MAPPINGS / "gateway-half.yaml").exit_code == 0
    assert named(halves, "t") == ("acme", "waits", "record_id", True)
    assert explained(halves, "waits")["kept_apart"] is None and halves.unjoined() == ["s/counts"]
    assert halves.run_ledger("void", "counts", "--account", "acme", "--reason", "sent twice", "--yes").exit_code == 0
    assert explained(halves, "counts")["kept_apart"] is None  # nothing of it counts


def test_halves_that_both_lack_tokens_say_so(halves: Halves) -> None:
    halves.load(gateway("g"))
    halves.load(engine("s", "g", **{"out": None}))
    assert explained(halves, "g")["kept_apart"]["reasons"] == ["no_tokens"]
    assert "  neither half says all tokens: input_tokens=100, output_tokens=none\n" in halves.run_ledger("explain", "g").stdout


def test_an_id_with_an_engines_prefix_is_that_without_it(halves: Halves) -> None:
    halves.load(gateway("g", header="h", **TOKENS), gateway("chatcmpl-own", 1, **TOKENS))
    assert [named(halves, one)[1:3] for one in ("chatcmpl-g", "cmpl-g", "chatcmpl-h")] == [("g", None), ("g", None), ("g", "header")]
    told = {one: halves.run_ledger("explain", one).stdout.splitlines()[1] for one in ("chatcmpl-g", "chatcmpl-h")}
    assert told == {
        "chatcmpl-g": "found by its id g, which is chatcmpl-g without the prefix of an engine",
        "chatcmpl-h": "found by its header h, which is chatcmpl-h without the prefix of an engine",
    }
    assert explained(halves, "cmpl-g")["found_as"] == "g"
    assert named(halves, "chatcmpl-own")[1] == "chatcmpl-own"
    assert "there is no request chatcmpl-nope\n" in halves.run_ledger("explain", "chatcmpl-nope").stderr


def test_the_prefixes_of_engines_are_those_that_the_mappings_take_away() -> None:
    written = "|".join(prefix.removesuffix("-") for prefix in ENGINE_PREFIXES)
    taken_away = re.findall(r"\^\(\?:([a-z|]+)\)-\(", "".join(file.read_text() for file in FORMATS.glob("*.yaml")))
    assert taken_away and set(taken_away) == {written}


@pytest.mark.parametrize("command", [("void",), ("correct", "--set", "output_tokens=9")])
def test_an_id_of_a_row_names_the_request_that_it_belongs_to(command: tuple[str, ...], halves: Halves) -> None:
    halves.load(gateway("g", trace="t", header="h", **TOKENS), gateway("g2", 1, header="h", **TOKENS))
    told = {one: halves.run_ledger(*command, one, "--reason", "meter").stderr.splitlines()[1] for one in ("t", "h", "x")}
    assert told == {
        "t": "  it is the trace of the request g --account acme: name that",
        "h": "  it is in rows of 2 requests: ledger explain h lists them",
        "x": "  check the id and the account",
    }


def test_a_row_that_is_repaired_but_for_its_tokens_is_told_as_one_that_waits_for_them(halves: Halves) -> None:
    halves.load(gateway("g", customer="", header="h") | {"at": "yesterday"})
    assert json.loads(halves.run_ledger("quarantine", "list", "--format", "json").stdout)[0]["account"] is None
    settings = ("--set", "account=acme", "--set", "received_at=2026-05-06T10:00:00Z")
    assert halves.run_ledger("quarantine", "requeue", "1", *settings, "--mapping", MAPPINGS / "gateway-half.yaml").exit_code == 1
    waits = "1 acme gateway-1.jsonl:1 usage_missing: waits for its engine's tokens\n"
    for filters in ([], ["--account", "acme"], ["--reason", "usage_missing"], ["--request-id", "g"]):
        assert halves.run_ledger("quarantine", "list", *filters).stdout == waits
    assert halves.run_ledger("quarantine", "list", "--count").stdout == "1 usage_missing\n"
    assert halves.run_ledger("quarantine", "list", "--account", "globex").stdout == ""
    assert "rows refused: usage_missing" in halves.run_ledger("status").stdout
    assert halves.run_ledger("quarantine", "show", "1").stdout.startswith("1 usage_missing: waits for its engine's tokens\n")
    for asked in ("g", "h"):
        (row_,) = explained(halves, asked)["quarantine"]
        assert (row_["id"], row_["account"], row_["received_at"], row_["reason"]) == (1, "acme", "2026-05-06T10:00:00Z", "usage_missing")
    halves.load(engine("s", "h"))
    assert named(halves, "g") == ("acme", "g", None, True)
    (row_,) = explained(halves, "g")["quarantine"]
    assert (row_["id"], row_["reason"], row_["resolution"]) == (1, "missing_field", "joined")


def test_an_engines_row_without_a_gateways_is_no_request_yet(halves: Halves) -> None:
    halves.load(engine("s", "nobody"))
    for arguments in (["s"], ["s", "--account", "acme"], ["nobody"]):
        way = "header" if "nobody" in arguments else "record_id"
        assert named(halves, *arguments) == (None, "s/nobody", way, False)
    for arguments in (["s/nobody"], ["s/nobody", "--account", "acme"]):
        assert named(halves, *arguments) == (None, "s/nobody", None, False)
    halves.load(gateway("g", header="nobody", **TOKENS | {"at": "2026-05-06T13:00:00Z"}))
    told = halves.run_ledger("explain", "nobody")
    assert told.exit_code == 2 and "  account not known  s/nobody  (its header)\n  acme  g  (its header)\n" in told.stderr
    assert named(halves, "nobody", "--account", "acme") == ("acme", "g", "header", True)


def test_what_may_mean_several_requests_is_an_error_that_names_the_first_ten(halves: Halves) -> None:
    halves.load(*(gateway(f"r{number:02}", number, header="same", **TOKENS) for number in range(11)))
    halves.load(gateway("other", customer="globex", header="same", **TOKENS), gateway("same-id", customer="globex", **TOKENS))
    halves.load(gateway("x", header="same-id", **TOKENS))
    told = halves.run_ledger("explain", "same")
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.splitlines() == [
        "error: same is in rows of 12 requests",
        *(f"  acme  r{number:02}  (its header)" for number in range(10)),
        "  and 2 more",
        "  name one: ledger explain REQUEST_ID --account NAME",
    ]
    assert named(halves, "same", "--account", "globex") == ("globex", "other", "header", True)
    assert named(halves, "r03", "--account", "acme") == ("acme", "r03", None, True)
    assert named(halves, "same-id") == ("globex", "same-id", None, True)  # an id of its own goes before one of a row
    assert named(halves, "same-id", "--account", "acme") == ("acme", "x", "header", True)


def test_an_id_of_which_nothing_is_known_says_which_accounts_come_near(tmp_path: Path, halves: Halves) -> None:
    halves.run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row("acme-bank"), row("globex", "bad", -1)]))
    told = {
        ("nope",): "there is no request nope\n  check the id",
        ("r", "--account", "globex"): "there is no request r of the account globex\n  check the id",
        ("r", "--account", "acme-bnak"): "there is no request r of the account acme-bnak\n  did you mean acme-bank?",
        ("bad", "--account", "globx"): "there is no request bad of the account globx\n  did you mean globex?",
        ("r", "--account", "zzz"): "there is no request r of the account zzz\n  ledger status shows the accounts",
    }
    for arguments, said in told.items():
        refused = halves.run_ledger("explain", *arguments)
        assert refused.exit_code == 1 and said in refused.stderr
    halves.run_ledger("quarantine", "dismiss", "--account", "globex", "--reason", "test traffic")
    assert named(halves, "bad") == ("globex", "bad", None, False)


def test_an_id_is_looked_up_by_indexes_alone(owner_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[str] = []

    def planned(connection: Connection, make: Any, query: Any, parameters: Any) -> Any:
        plans.extend(line for (line,) in fetch(connection, SQL("EXPLAIN {}").format(query), parameters))
        return fetch_as(connection, make, query, parameters)

    monkeypatch.setattr(other_ids, "fetch_as", planned)
    with owner_database.begin() as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO observation (received_at, cached_input_tokens, batch_id, status, async_header, clock_clamped, role, account, "
            "record_id, request_id, trace, header, model, queue) SELECT '2026-05-06T10:00:00Z', 0, 1, 200, false, false, 'gateway', "
            "'a' || n % 9, 'r' || n, 'c' || n, 't' || n, 'h' || n, 'm', 'standard' FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE observation")
        (found,) = requests_by_other_id(connection, "t77", account=None, most=10)
    assert (found.account, found.request_id, found.link, found.of) == ("a5", "r77", "trace", 1)
    searched = [line for line in plans if "observation" in line]
    assert any("Index Scan on pk_observation" in line for line in searched)
    assert not any("Seq Scan on observation" in line for line in searched)


@pytest.mark.parametrize(
    "decision",
    [
        ("correct", "g", "--account", "acme", "--set", "output_tokens=9", "--reason", "meter"),
        ("void", "g", "--account", "acme", "--reason", "sent twice"),
        ("quarantine", "dismiss", "--account", "acme", "--reason", "test traffic"),
    ],
)
def test_a_pair_about_which_somebody_has_decided_is_told_by_no_command(decision: tuple[str, ...], halves: Halves) -> None:
    waits = decision[0] == "quarantine"
    halves.load(gateway("g", ms=300, **({} if waits else TOKENS)))
    halves.load(engine("s", "g", run_ms=400))
    assert json.loads(halves.run_ledger("status", "--format", "json").stdout)["kept_apart"] == 1
    assert explained(halves, "g")["kept_apart"]["reasons"] == ["times"]
    assert halves.run_ledger(*decision).exit_code == 0
    status = json.loads(halves.run_ledger("status", "--format", "json").stdout)
    assert (status["kept_apart"], explained(halves, "g")["kept_apart"]) == (0, None)
    assert not re.search("halves|without a gateway's", halves.run_ledger("status").stdout)
    if waits:
        assert json.loads(halves.run_ledger("quarantine", "show", "1", "--format", "json").stdout)["kept_apart"] is None


def test_a_row_that_is_sent_in_again_says_that_its_engines_half_stays_apart(halves: Halves) -> None:
    halves.load(gateway("g", ms=300))
    halves.load(engine("s", "g", run_ms=400))
    tokens = ("--set", "input_tokens=7", "--set", "output_tokens=8")
    command = ("quarantine", "requeue", "1", *tokens, "--mapping", MAPPINGS / "gateway-half.yaml")
    dry, done = halves.run_ledger(*command, "--dry-run"), halves.run_ledger(*command)
    assert dry.stdout == done.stdout
    explained_lines = halves.run_ledger("explain", "g").stdout.splitlines()
    start = next(place for place, line in enumerate(explained_lines) if "stay apart" in line)
    assert done.stdout.splitlines() == ["1 accepted", *(f"  {line}" for line in explained_lines[start : start + 5])]
    assert "times contradict: queue_us=10000 and inference_us=400000 exceed e2e_us=300000" in done.stdout


def test_an_id_with_an_engines_prefix_is_corrected_and_withdrawn_as_it_is_explained(tmp_path: Path, halves: Halves) -> None:
    halves.load(gateway("g", header="h", **TOKENS), gateway("chatcmpl-own", 1, **TOKENS), gateway("own", 2, **TOKENS))
    halves.run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row("acme", "r"), row("acme", "chatcmpl-r", -1)]))
    reason = ("--reason", "meter")
    assert halves.run_ledger("correct", "chatcmpl-g", "--set", "output_tokens=9", *reason).stdout.startswith("acme g: revision 2 added")
    assert halves.run_ledger("void", "cmpl-g", *reason).stdout == "acme g: revision 2 withdrawn\n"
    assert halves.run_ledger("void", "chatcmpl-own", *reason).stdout == "acme chatcmpl-own: revision 1 withdrawn\n"
    assert "it is the header of the request g --account acme: name that" in halves.run_ledger("void", "chatcmpl-h", *reason).stderr
    assert "there is no request chatcmpl-r\n" in halves.run_ledger("void", "chatcmpl-r", *reason).stderr  # a refused row has that id


def test_a_row_that_came_without_account_or_id_is_told_of_the_request_that_it_became(tmp_path: Path, halves: Halves) -> None:
    halves.run_ledger("ingest", write_rows(tmp_path / "rows.csv", [row("", "a"), row("acme", ""), row("", "")]))
    lacking = {"a": ["account=acme"], "b": ["request_id=b"], "c": ["account=acme", "request_id=c"]}
    for number, values in enumerate(lacking.values(), start=1):
        settings = [part for value in values for part in ("--set", value)]
        listed = json.loads(halves.run_ledger("quarantine", "list", "--format", "json").stdout)
        id_ = next(str(one["id"]) for one in listed if one["line"] == number + 1)
        done = halves.run_ledger("quarantine", "requeue", id_, *settings)
        assert done.exit_code == 0, done.output
    told = {one: [(row_["line"], row_["resolution"]) for row_ in explained(halves, one)["quarantine"]] for one in lacking}
    assert told == {one: [(number, "requeued")] for number, one in enumerate(lacking, start=2)}


def test_rows_are_chosen_by_the_instant_that_is_shown_of_them(halves: Halves) -> None:
    halves.load(gateway("g", customer="", header="h") | {"at": "yesterday"})
    settings = ("--set", "account=acme", "--set", "received_at=2026-05-06T10:00:00Z")
    halves.run_ledger("quarantine", "requeue", "1", *settings, "--mapping", MAPPINGS / "gateway-half.yaml")
    chosen = {
        instant: tuple(halves.run_ledger("quarantine", "list", way, instant, "--count").stdout for way in ("--since", "--until"))
        for instant in ("2026-05-06T10:00:00Z", "2026-05-06T10:00:01Z")
    }
    assert chosen == {"2026-05-06T10:00:00Z": ("1 usage_missing\n", ""), "2026-05-06T10:00:01Z": ("", "1 usage_missing\n")}
