"""A table of refused rows that goes out and comes back says the same, whatever stands in it, and no cell of it is run by a spreadsheet."""

import csv
import io
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.workflows.repair import COLUMNS, read_table, write_table

# Texts as quarantine keeps them: no NUL and no half of a surrogate. Those that a spreadsheet would run are more often than by chance.
BEGINNINGS = st.sampled_from(["", "=", "@", "'", "''", "-", "+", "\t", "\r\n"])
TEXTS = st.builds(str.__add__, BEGINNINGS, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
ROWS = st.lists(st.dictionaries(st.sampled_from(COLUMNS[1:]), TEXTS), max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, as_csv=st.booleans(), delimiter=st.sampled_from([None, ",", ";", "\t"]))
def test_a_table_comes_back_as_it_went_out(rows: list[dict[str, str]], as_csv: bool, delimiter: str | None, tmp_path: Path) -> None:
    whole = [dict.fromkeys(COLUMNS, "") | row | {COLUMNS[0]: str(number)} for number, row in enumerate(rows, start=1)]
    out = io.StringIO(newline="")
    assert write_table(whole, out, as_csv=as_csv) == len(whole)
    text = out.getvalue()
    if as_csv:
        cells = list(csv.reader(io.StringIO(text, newline="")))
        assert not any(cell.startswith(("=", "@", "+", "\t")) for row in cells for cell in row)
        if delimiter is not None:  # saved again by somebody's spreadsheet
            saved = io.StringIO(newline="")
            csv.writer(saved, delimiter=delimiter).writerows(cells)
            text = saved.getvalue()
    (tmp_path / "table").write_text(text, encoding="utf-8", newline="")
    if not text:
        return
    back = list(read_table(tmp_path / "table"))
    assert [one.quarantine_id for one in back] == list(range(1, len(whole) + 1))
    for one, row in zip(back, whole, strict=True):
        assert all(one.texts.get(name, "") == text for name, text in row.items() if name in COLUMNS[3:])
