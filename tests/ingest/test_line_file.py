"""Where the lines of a file stand, and which files have lines that cannot be read one by one."""

import os
from pathlib import Path

import pytest

from ledger.errors import LedgerError
from ledger.ingest.reading.line_file import BLOCK_BYTES, LONGEST_LINE_BYTES, line_file

HEADER = b"a,b\n"


def test_any_span_of_lines_can_be_cut_out(tmp_path: Path) -> None:
    file, piece = tmp_path / "rows.csv", tmp_path / "piece"
    lines = [b"%d,%s" % (number, b"x" * (number % 997)) for number in range(2_000)]
    assert sum(map(len, lines)) > 3 * BLOCK_BYTES
    file.write_bytes(b"\n".join(lines))
    found = line_file(file)
    assert found is not None and found.lines == len(lines) and found.first_line == "0,"
    for first, last in ((0, 1), (0, 2_000), (700, 1_400), (1_999, 2_000), (5, 6), (2_000, 2_000)):
        before = found.cut(first, last, piece).before
        assert piece.read_bytes().split(b"\n")[first - before :][: last - first] == lines[first:last], (first, last)
    os.truncate(file, BLOCK_BYTES)
    with pytest.raises(LedgerError, match="cut off while it was loaded"):
        found.cut(1_000, 2_000, piece)


@pytest.mark.parametrize(
    ("content", "first_line"),
    [
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", "a,b"),
        ("a,b\nä,\U0001f600\n".encode(), "a,b"),
        (b'a,b\n"1,5",2\n', "a,b"),
        (b'{"a": 1}\n {"a": "\\""}', '{"a": 1}'),
    ],
    ids=["mark-and-returns", "not-ascii", "closed-quotes", "json"],
)
def test_plain_lines_are_found(tmp_path: Path, content: bytes, first_line: str) -> None:
    file = tmp_path / "rows"
    file.write_bytes(content)
    found = line_file(file)
    assert found is not None
    assert (found.first_line, found.lines, found.has_returns) == (first_line, 2, b"\r" in content)


def test_numbered_lines_are_json_whose_quotes_span_none(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b'7{"a": "\\""}\n')
    found = line_file(file, is_numbered=True)
    assert found is not None and found.is_numbered and line_file(file) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n" + HEADER,
        HEADER + b"\n1,2\n",
        HEADER + b"1,2\n \t\n",
        HEADER + b"1,2\n \n3,4",
        HEADER + b"1,2\n  ",
        HEADER + b"1,\xff\n",
        HEADER + b"1,\x002\n",
        HEADER + b"1,\x01\x02\x03\x04\n",
        HEADER + b'1,"2\n3"\n',
        HEADER + b"1,2\r3,4\n",
        HEADER + b"1,2\r\n",
        HEADER + b"1," + b"x" * LONGEST_LINE_BYTES + b"\n",
    ],
    ids=[
        "empty", "blank-first", "blank", "blank-last", "spaces", "spaces-last", "not-utf-8", "nul", "control", "quote-over-lines",
        "lone-return", "mixed-ends", "long",
    ],
)  # fmt: skip
def test_lines_that_need_a_closer_look_are_left_to_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "rows"
    file.write_bytes(content)
    assert line_file(file) is None


@pytest.mark.parametrize(
    ("number", "is_inexact"),
    [
        (b"1234567890123456", True), (b"0.1234567890123456", True), (b"1.234567890123456", True), (b"123456789012345", False),
        (b"1234567-90123456", False), (b"1e21", True), (b"5.7E-05", True), (b"1e+2", True), (b"e21", False), (b"1f", False),
    ],
)  # fmt: skip
def test_a_number_that_would_be_written_anew_is_found_wherever_blocks_end(tmp_path: Path, number: bytes, is_inexact: bool) -> None:
    file = tmp_path / "rows"
    for place in (0, *(BLOCK_BYTES - before for before in (20, 16, 15, 8, 3, 1, 0)), 2 * BLOCK_BYTES - 3):
        file.write_bytes((b"x" * 99 + b"\n") * (place // 100) + b"x" * (place % 100) + number + b"}")
        found = line_file(file)
        assert found is not None
        assert found.cut(0, found.lines, tmp_path / "piece", find_inexact=True).may_be_inexact is is_inexact, place
