"""Files that are cut off, damaged or odd: nothing of them is lost or altered in silence, and the message names the file."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import Result

from ledger.ingest.reading.sound_lines import LONGEST_LINE_BYTES, sound_file
from tests.ingest.sample_rows import HEADER, counts, row, totals

Run = Callable[..., Result]
Query = Callable[[str], list[dict[str, Any]]]
TEXT = "\n".join([HEADER, *(row(request_id=f"r{n}", tokens=n * 7_919) for n in range(3_000))]) + "\n"


def record(request_id: str, **fields: object) -> str:
    """A good record as JSON."""
    return json.dumps(
        {"account": "acme", "request_id": request_id, "model": "m", "received_at": "2026-05-06T10:00:00Z", "input_tokens": 1,
         "output_tokens": 1} | fields
    )  # fmt: skip


def refused_whole(result: Result, file: Path) -> bool:
    """Whether the file was refused as a whole, by its name."""
    return result.exit_code == 1 and totals(result.stdout) == counts() and result.stderr.startswith(f"error: {file}: ")


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_compressed_file_that_is_cut_off_is_refused_whole(tmp_path: Path, run_ledger: Run, ending: str, kept: float) -> None:
    file = tmp_path / f"rows.csv.{ending}"
    file.write_bytes(compressed(tmp_path, ending)[: int(len(compressed(tmp_path, ending)) * kept)])
    assert refused_whole(run_ledger("ingest", file, "--format", "json"), file)


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_compressed_file_with_a_wrong_checksum_is_refused_whole(tmp_path: Path, run_ledger: Run, ending: str) -> None:
    content = bytearray(compressed(tmp_path, ending))
    content[-5 if ending == "gz" else -1] ^= 0xFF
    file = tmp_path / f"rows.csv.{ending}"
    file.write_bytes(content)
    assert refused_whole(run_ledger("ingest", file, "--format", "json"), file)


def compressed(folder: Path, ending: str) -> bytes:
    """TEXT as .gz, or as .zst with its checksum."""
    if ending == "gz":
        return gzip.compress(TEXT.encode())
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compress(TEXT.encode())


@pytest.mark.parametrize("tail", ["", ",", ",{", "]]", "] x", "]\n[" + record("second") + "]"])
def test_an_array_that_is_cut_off_or_followed_by_more_is_refused_whole(tmp_path: Path, run_ledger: Run, tail: str) -> None:
    for name, text in (("good.json", record("a b")), ("broken.json", record("a b").replace("a b", "\\ud800"))):
        file = tmp_path / name
        file.write_text(f"[{text}{tail}")
        assert refused_whole(run_ledger("ingest", file, "--format", "json"), file)


def test_a_large_array_with_one_broken_object_is_read_in_time(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "rows.json"
    file.write_text("[" + ",\n".join([record("\ud800"), *(record(f"r{n}", padding="x" * 400) for n in range(10_000))]) + " ]\n")
    result = run_ledger("ingest", file, "--format", "json")
    assert totals(result.stdout) == counts(read=10_001, new=10_000, bad_text=1)


def test_a_large_array_on_one_line_is_read(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "rows.log"
    file.write_text("[" + ", ".join(record(f"r{n}", padding="x" * 400) for n in range(5_000)) + "]")
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=5_000, new=5_000)


@pytest.mark.parametrize("queue_key", ['"queue"', '"que\\u0075e"'])
def test_a_field_that_first_stands_in_a_late_record_counts(tmp_path: Path, run_ledger: Run, query: Query, queue_key: str) -> None:
    late = record("late", queue="batch", queue_ms=7).replace('"queue"', queue_key)
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([*(record(f"r{n}") for n in range(10_000)), late]))
    run_ledger("ingest", file)
    expected = {"queue": "batch", "queue_us": 7_000}
    assert query("SELECT queue, queue_us FROM event WHERE request_id = 'late'") == [expected]


def test_lines_with_long_prompts_are_read(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(record(f"r{n}", prompt="x" * 300_000) for n in range(250)))
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=250, new=250)


@pytest.mark.parametrize("name", [b"queue_ms", b"Queue_ms", b"ACCOUNT_", b"file_row_number"])
def test_a_parquet_file_with_columns_that_cannot_be_told_apart_is_refused(tmp_path: Path, run_ledger: Run, name: bytes) -> None:
    placeholder = "x" * len(name)
    columns = f"'acme' AS account, '' AS account_, 'r' AS request_id, 'm' AS model, now() AS received_at, 7 AS {placeholder}, 8 AS queue_ms"
    file = tmp_path / "rows.parquet"
    duckdb.execute(f"COPY (SELECT {columns}, 1 AS input_tokens, 1 AS output_tokens) TO '{file}' (FORMAT parquet)")
    file.write_bytes(file.read_bytes().replace(placeholder.encode(), name))
    assert refused_whole(run_ledger("ingest", file, "--format", "json"), file)


def test_columns_without_a_name_that_a_spreadsheet_left_behind_are_ignored(tmp_path: Path, run_ledger: Run) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(f"{HEADER},,\n{row()},,\n")
    result = run_ledger("ingest", file, "--format", "json")
    assert totals(result.stdout) == counts(read=1, new=1) and "ignored the columns without a name" in result.stderr


@pytest.mark.parametrize("padding", [b"x" * 2_100_000, b"x" * 33_000_000, "息".encode() * 700_000, "息".encode() * 5_000 + b"\xff"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_line_that_is_too_long_or_no_text_is_refused_and_its_neighbours_stay(
    tmp_path: Path, run_ledger: Run, query: Query, padding: bytes, newline: bytes
) -> None:
    good = [row(request_id=f"r{n}").encode() for n in range(3)]
    file = tmp_path / "rows.csv"
    file.write_bytes(newline.join([HEADER.encode(), good[0], b"a" + padding, good[1], padding, good[2]]) + newline)
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=5, new=3, bad_text=2)
    fault = "the line is not UTF-8" if padding.endswith(b"\xff") else "the line is longer than 2 MB"
    assert query("SELECT line, detail FROM quarantine ORDER BY line") == [{"line": line, "detail": fault} for line in (3, 5)]
    assert run_ledger("ingest", file).stdout.count("2 not added to quarantine") == 1


@pytest.mark.parametrize("ending", [b"x" * 3_000_000, b"\xff"])
def test_refused_lines_that_begin_alike_stand_in_quarantine_each(tmp_path: Path, run_ledger: Run, query: Query, ending: bytes) -> None:
    prompt = b'{"prompt": "' + b"p" * 20_000
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\n".join([record("r").encode(), *(prompt + b"%d" % n + ending + b'"}' for n in range(3))]))
    run_ledger("ingest", file)
    assert query("SELECT count(*) FROM quarantine") == [{"count": 3}]


@pytest.mark.parametrize(
    "ends", [["\r\n", "\r\n", "\r", "\r\n", "\r\n"], ["\r\n", "\r", "\r\n", "\n", "\r"], ["\n", "\r\n", "\r\n", "\n", "\r\n"]]
)
def test_no_line_is_lost_or_counted_twice_whose_ends_differ(tmp_path: Path, run_ledger: Run, query: Query, ends: list[str]) -> None:
    lines = [HEADER, *(row(request_id=f"r{n}") for n in range(3)), row(request_id="")]
    file = tmp_path / "rows.csv"
    file.write_bytes("".join(line + end for line, end in zip(lines, ends, strict=True)).encode())
    assert totals(run_ledger("ingest", file, "--format", "json").stdout) == counts(read=4, new=3, missing_field=1)
    assert query("SELECT line FROM quarantine") == [{"line": 5}]


@pytest.mark.parametrize("size_bytes", [1 << 20, 3 << 20, 4 << 20])
def test_where_a_file_is_cut_to_be_read_changes_no_line(tmp_path: Path, size_bytes: int) -> None:
    file, copy = tmp_path / "rows", tmp_path / "copy"
    for place in range(size_bytes - 3, size_bytes + 3):
        first = b"x" * place
        file.write_bytes(first + b"\r\nb\r\n\xff\rc")
        found = sound_file(file, copy).read_bytes().split(b"\n")
        assert [len(found), found[1], found[3]] == [4, b"b", b"c"], place
        assert found[2].endswith(b"the line is not UTF-8")
        assert found[0] == first if place <= LONGEST_LINE_BYTES else hashlib.sha256(first).hexdigest().encode() in found[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"[]", "there is no record in it"),
        (b'{"data": []}\n', "there is no record in it"),
        (b"{}\n", "a jsonl file in which no record can be read"),
        (b"\n\xff\n", "the first line is not UTF-8, or longer than 2 MB"),
    ],
)
def test_a_file_without_records_is_not_taken_for_a_damaged_one(tmp_path: Path, run_ledger: Run, content: bytes, message: str) -> None:
    file = tmp_path / "rows.json"
    file.write_bytes(content)
    assert run_ledger("ingest", "--check", file).stderr.splitlines()[0] == f"error: {file}: {message}"
