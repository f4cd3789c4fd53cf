"""Numbers of documents are written as the format of their series says, and a format that would not number them is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.settlement.numbering import DEFAULT_FORMATS, Series, format_problem, number_text


@pytest.mark.parametrize(
    ("number_format", "printed"),
    [
        (DEFAULT_FORMATS[Series.INVOICE], "INV-2026-000041"),
        (DEFAULT_FORMATS[Series.CREDIT_NOTE], "CN-2026-000041"),
        ("{number}/{year}", "41/2026"),
        ("{year}{number:01}", "202641"),
        ("A.b_{year}{number:09}", "A.b_2026000000041"),
    ],
)
def test_a_number_is_written_as_its_format_says(number_format: str, printed: str) -> None:
    assert format_problem(number_format) is None
    assert number_text(number_format, 2026, 41) == printed


def test_a_number_that_has_outgrown_its_zeros_is_written_in_full() -> None:
    assert number_text("{year}-{number:02}", 2026, 12345) == "2026-12345"


@pytest.mark.parametrize(
    ("number_format", "problem"),
    [
        ("", "needs {year} once"),
        ("INV-{number:06}", "needs {year} once"),
        ("{year}{year}{number}", "needs {year} once"),
        ("INV-{year}", "needs {number} or {number:06} once"),
        ("{year}-{number}-{number:02}", "needs {number} or {number:06} once"),
        ("{year}-{number:6}", "needs {number} or {number:06} once"),
        ("{year}-{number:010}", "needs {number} or {number:06} once"),
        ("{year}-{number.__class__}", "needs {number} or {number:06} once"),
        ("{year}-{number}-{month}", "no other character"),
        ("{year}-{number}{{}}", "no other character"),
        ("INV {year}-{number}", "no other character"),
        ("INV-{year}-{number}\n", "no other character"),
        ("発{year}-{number}", "no other character"),
        ("<b>{year}-{number}", "no other character"),
        ("I" * 24 + "{year}{number}", "more than 36 characters"),
    ],
)
def test_a_format_that_would_not_number_documents_says_what_is_wrong(number_format: str, problem: str) -> None:
    assert problem in str(format_problem(number_format))


def test_the_longest_format_is_taken() -> None:
    assert format_problem("I" * 23 + "{year}{number:09}") is None


@given(
    st.sampled_from(["{year}{number}", "{number}{year}", "1{year}2{number:03}3", "{number:02}1{year}"]),
    st.lists(st.tuples(st.integers(1970, 9999), st.integers(1, 10**9)), min_size=2, max_size=2, unique=True),
)
def test_a_format_writes_no_two_numbers_alike(number_format: str, both: list[tuple[int, int]]) -> None:
    assert len({number_text(number_format, year, number) for year, number in both}) == 2
