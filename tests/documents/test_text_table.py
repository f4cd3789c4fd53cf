"""Columns of text: widths of what a terminal shows, numbers to the right, styles only where they are asked for."""

from ledger.documents.text_table import Span, Style, Table, written


def shown(table: Table, *, is_coloured: bool = False) -> list[str]:
    return list(written(table.lines(), is_coloured=is_coloured))


def test_a_column_is_as_wide_as_its_widest_cell_and_nothing_is_cut() -> None:
    table = Table("Name", ">Count", "Note")
    table.add_row("x" * 1200, "1", "")
    table.add_row("y", "1,234", "late")
    assert shown(table) == [
        f"  {'Name':1200}   Count   Note\n",
        f"  {'x' * 1200}       1\n",
        f"  {'y':1200}   1,234   late\n",
    ]


def test_wide_characters_take_two_columns_and_combining_ones_none() -> None:
    table = Table("Name", ">Count")
    table.add_row("招商银行", "1")
    table.add_row("cafe\u0301", "12")
    table.add_row("12345678", "123")
    assert shown(table)[1:] == ["  招商银行       1\n", "  cafe\u0301          12\n", "  12345678     123\n"]


def test_a_cell_of_its_own_style_keeps_it_in_a_styled_row() -> None:
    table = Table("A", "B")
    table.add_row("1", Span("2", Style.GREEN), style=Style.BOLD)
    assert shown(table, is_coloured=True) == ["  \x1b[2mA\x1b[0m   \x1b[2mB\x1b[0m\n", "  \x1b[1m1\x1b[0m   \x1b[32m2\x1b[0m\n"]
    assert shown(table) == ["  A   B\n", "  1   2\n"]
