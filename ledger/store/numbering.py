"""How providers' numbers of documents are written, by series: set once and again, each time for what is issued from then on.

Source: specification, section 8; decision record issued-documents.
"""

from dataclasses import dataclass
from datetime import datetime

from ledger.settlement.numbering import DEFAULT_FORMATS, Series, format_problem
from ledger.store.connection import Connection, execute, fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesNumbering:
    """How a provider's numbers of a series are written, since when and by whom (None: nobody has said it), and the one issued last."""

    tax_id: str
    series: Series
    number_format: str
    set_at: datetime | None
    author: str | None
    last_number: str | None


def lock_numbers(connection: Connection, tax_id: str) -> None:
    """Until the transaction ends nobody else numbers a document of the provider, or says how numbers are written."""
    execute(connection, "SELECT pg_advisory_xact_lock(hashtext('ledger.issue'), hashtext(%(tax_id)s))", {"tax_id": tax_id})


def numbering_format(connection: Connection, tax_id: str, series: Series) -> str:
    """How the provider's numbers of the series are written."""
    rows = fetch(
        connection,
        "SELECT format FROM numbering WHERE (tax_id, series) = (%(tax_id)s, %(series)s) ORDER BY numbering_id DESC LIMIT 1",
        {"tax_id": tax_id, "series": series},
    )
    return rows[0][0] if rows else DEFAULT_FORMATS[series]


def set_numbering(connection: Connection, tax_id: str, series: Series, number_format: str, *, set_at: datetime, author: str) -> None:
    """From now on the provider's numbers of the series are written so; those that are issued stay. The format has no `format_problem`."""
    assert format_problem(number_format) is None
    execute(
        connection,
        "INSERT INTO numbering (tax_id, series, format, set_at, author) "
        "VALUES (%(tax_id)s, %(series)s, %(format)s, %(set_at)s, %(author)s)",
        {"tax_id": tax_id, "series": series, "format": number_format, "set_at": set_at, "author": author},
    )


def series_numbering(connection: Connection, tax_id: str, series: Series) -> SeriesNumbering:
    """How the numbers are written now, with what was issued last."""
    of_series = {"tax_id": tax_id, "series": series}
    rows = fetch(
        connection,
        "SELECT set_at, author FROM numbering WHERE (tax_id, series) = (%(tax_id)s, %(series)s) ORDER BY numbering_id DESC LIMIT 1",
        of_series,
    )
    issued = fetch(
        connection,
        "SELECT number_text FROM issued_document WHERE (tax_id, series) = (%(tax_id)s, %(series)s) ORDER BY position DESC LIMIT 1",
        of_series,
    )
    set_at, author = rows[0] if rows else (None, None)
    return SeriesNumbering(
        tax_id=tax_id,
        series=series,
        number_format=numbering_format(connection, tax_id, series),
        set_at=set_at,
        author=author,
        last_number=issued[0][0] if issued else None,
    )


def first_numbers(connection: Connection, tax_id: str, series: Series) -> list[str]:
    """Of every way in which numbers of the series were written, digits aside, the first that was issued."""
    rows = fetch(
        connection,
        "SELECT DISTINCT ON (regexp_replace(number_text, '[0-9]', '', 'g')) number_text FROM issued_document "
        "WHERE (tax_id, series) = (%(tax_id)s, %(series)s) ORDER BY regexp_replace(number_text, '[0-9]', '', 'g'), position",
        {"tax_id": tax_id, "series": series},
    )
    return [number_text for (number_text,) in rows]
