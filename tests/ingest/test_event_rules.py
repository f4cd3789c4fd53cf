"""The rules of the event, by value: exact rounding against Decimal, and every reason with a row that has it."""

import csv
import json
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.ingest.event_rules import MACROS, Reason
from tests.ingest.sample_rows import GOLDEN

ROOT = Path(__file__).parents[2]
_connection = duckdb.connect()
for _macro in MACROS:
    _connection.execute(_macro)

digits = st.text("0123456789", min_size=1, max_size=15)
tails = st.text("05", max_size=24) | st.text("0123456789", max_size=24)
decimals = st.builds(
    lambda sign, whole, tail, exponent: sign + whole + ("." + tail if tail else "") + exponent,
    st.sampled_from(["", "-"]), digits, tails, st.sampled_from(["", "", "", "e-05", "E+3", "e2", "e-12"]),
)  # fmt: skip


def scaled(text: str, power: int) -> int | None:
    row = _connection.execute("SELECT scaled_decimal($1, $2)", [text, power]).fetchone()
    assert row is not None
    value: int | None = row[0]
    return value


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(decimals, min_size=20, max_size=60), power=st.sampled_from([6, 3, -3]))
def test_a_decimal_becomes_microseconds_half_even_as_decimal_does(texts: list[str], power: int) -> None:
    rows = _connection.execute("SELECT x, scaled_decimal(x, $2) FROM (SELECT unnest($1::VARCHAR[]) AS x)", [texts, power]).fetchall()
    with localcontext() as context:
        context.prec = 200
        for text, value in rows:
            expected = int(Decimal(text).scaleb(power).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
            if abs(expected) < 10**18:
                assert value == expected, text
            else:
                assert abs(value) >= 10**18, text


@pytest.mark.parametrize(
    ("text", "power", "expected"),
    [("0.0000005", 6, 0), ("0.0000015", 6, 2), ("0.00000050000000000000000001", 6, 1), ("-0.0000015", 6, -2), ("99.5", 3, 99_500),
     ("1500", -3, 2), ("2500", -3, 2), ("5.7e-05", 6, 57), ("1e99", 6, 10**18), ("99,5", 3, None), ("1e400", 3, None), ("NaN", 3, None)],
)  # fmt: skip
def test_halves_go_to_the_even_neighbour_and_no_text_is_guessed(text: str, power: int, expected: int | None) -> None:
    assert scaled(text, power) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-06T10:00:00+08:00", "2026-05-06 02:00:00"),
        ("2026-05-06t02:00:00z", "2026-05-06 02:00:00"),
        ("2026-05-06T02:00:00.1234565Z", "2026-05-06 02:00:00.123456"),
        ("2026-05-06T02:00:00.1234575Z", "2026-05-06 02:00:00.123458"),
        ("2026-12-31T23:59:59.9999999-00:30", "2027-01-01 00:30:00"),
        ("2024-02-29T00:00:00Z", "2024-02-29 00:00:00"),
        ("2026-02-29T00:00:00Z", None),
        ("2026-05-06T24:00:00Z", None),
        ("2026-05-06T10:59:60Z", None),
        ("2026-05-06T10:00:00", None),
    ],
)
def test_instants_are_rfc_3339_with_an_offset(text: str, expected: str | None) -> None:
    row = _connection.execute("SELECT make_timestamp(within_calendar(rfc3339_us($1)))::VARCHAR", [text]).fetchone()
    assert row == (expected,)


@pytest.mark.parametrize(("name", "unread_lines"), [("rows.csv", 1), ("lines.jsonl", 0)])
def test_every_golden_row_has_the_reason_it_names(
    name: str, unread_lines: int, run_ledger: Callable[..., Any], query: Callable[[str], list[dict[str, Any]]]
) -> None:
    file = GOLDEN / "quarantine" / name
    result = run_ledger("ingest", file, "--format", "json")
    assert result.exit_code == 0
    expected = {}
    for line, text in enumerate(file.read_text().splitlines(), start=1):
        if name.endswith(".csv"):
            reason = next(csv.reader([text]))[0]
        else:
            match = re.search(r'"(?:accepted|bad_\w+|missing_field)"', text)
            reason = json.loads(match[0]) if match else "blank"
        if line > unread_lines and reason not in ("accepted", "blank"):
            expected[line] = reason
    found = {row["line"]: row["reason"] for row in query("SELECT line, reason FROM quarantine")}
    assert found == expected
    summary = json.loads(result.stdout)["total"]
    assert summary["refused"] + summary["conflict"] == len(expected)


def test_each_reason_is_documented_and_has_a_golden_row() -> None:
    _, section = (ROOT / "docs" / "operators-ingest.md").read_text().split("## Refused rows")
    documented = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert documented == [str(reason) for reason in Reason]
    with (GOLDEN / "quarantine" / "rows.csv").open() as file:
        shown = {row["expected"] for row in csv.DictReader(file)} - {"accepted"}
    assert shown == set(documented)


def test_defaults_are_filled_and_texts_normalised(run_ledger: Callable[..., Any], query: Callable[[str], list[dict[str, Any]]]) -> None:
    assert run_ledger("ingest", GOLDEN / "quarantine" / "rows.csv").exit_code == 0
    stored = {row["request_id"]: row for row in query("SELECT * FROM event")}
    plain = stored["q1"]
    assert (plain["status"], plain["queue"], plain["cached_input_tokens"], plain["async_header"], plain["clock_clamped"]) == (
        200, "standard", 0, False, False,
    )  # fmt: skip
    assert (stored["q2"]["queue_us"], stored["q2"]["clock_clamped"]) == (0, True)
    assert (stored["q3"]["queue_us"], stored["q3"]["clock_clamped"]) == (0, True)
    assert stored["q5"]["status"] == 999
    assert (stored["q12"]["cold_start"], stored["q12"]["async_header"], stored["q12"]["cached_input_tokens"]) == (None, True, 100)
    assert stored["q13"]["queue_us"] == 57
    assert stored["q14"]["queue_us"] == 99_500
    assert stored["q1"]["queue_us"] is None


def test_refused_rows_keep_what_the_mapping_reads_and_nothing_else(
    tmp_path: Path, run_ledger: Callable[..., Any], query: Callable[[str], list[dict[str, Any]]]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"account":"a","request_id":"r","model":"m","received_at":"soon","prompt":"secret words","api_key":"sk-1"}\n')
    run_ledger("ingest", file)
    (row,) = query("SELECT fields, detail FROM quarantine")
    assert row["fields"] == {"account": "a", "model": "m", "received_at": "soon", "request_id": "r"}
    assert row["detail"] == "received_at is 'soon', expected an instant with its offset, such as 2026-05-06T10:00:00+08:00"
