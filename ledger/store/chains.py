"""The chains of issued documents as they are kept, and rows of them that belong to nothing: read, whatever was done to them.

Source: specification, section 8, "Reproducible"; decision record issued-documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.settlement.numbering import Series
from ledger.store.connection import Connection, fetch, fetch_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A document in its provider's chain; `contract_id` and `period` of the closed period that it is of, None if that is not there, as of
    a credit on demand (`is_credit`)."""

    number_text: str
    series: Series
    year: int
    number: int
    position: int
    previous_seal: str | None
    seal: str
    contract_id: str | None
    period: str | None
    is_credit: bool


def providers_of_documents(connection: Connection) -> list[str]:
    """The tax ids of all who have issued a document, in order."""
    return [tax_id for (tax_id,) in fetch(connection, "SELECT DISTINCT tax_id FROM issued_document ORDER BY tax_id")]


def chain_of(connection: Connection, tax_id: str) -> list[Link]:
    """The provider's documents in the order of their positions."""
    return fetch_as(
        connection,
        Link,
        "SELECT number_text, series, year, number, position, previous_seal, seal, closing.contract_id, closing.period, "
        "note.number_text IS NOT NULL AS is_credit FROM issued_document LEFT JOIN closing USING (tax_id, number_text) "
        "LEFT JOIN credit_note note USING (tax_id, number_text) WHERE tax_id = %(tax_id)s ORDER BY position",
        {"tax_id": tax_id},
    )


def stray_rows(connection: Connection) -> list[str]:
    """Rows that belong to no document or closed period, and closed periods that do not follow on the one before, in words."""
    found: Sequence[tuple[str]] = fetch(
        connection,
        "SELECT format('closed period %s of %s: its document %s is missing', period, contract_id, number_text) FROM closing "
        "WHERE NOT EXISTS (SELECT FROM issued_document d WHERE (d.tax_id, d.number_text) = (closing.tax_id, closing.number_text)) "
        "UNION ALL SELECT format('line %s of %s of %s: its closed period is missing', position, period, contract_id) FROM invoice_line "
        "WHERE NOT EXISTS (SELECT FROM closing c WHERE (c.contract_id, c.period) = (invoice_line.contract_id, invoice_line.period)) "
        "UNION ALL SELECT format('posting %s of %s: its document is missing', position, number_text) FROM journal_posting posting "
        "WHERE NOT EXISTS (SELECT FROM issued_document d WHERE (d.tax_id, d.number_text) = (posting.tax_id, posting.number_text)) "
        "UNION ALL SELECT format('file %s of %s: its document is missing', name, number_text) FROM issued_file file "
        "WHERE NOT EXISTS (SELECT FROM issued_document d WHERE (d.tax_id, d.number_text) = (file.tax_id, file.number_text)) "
        "UNION ALL SELECT format('closed period %s of %s: it names %s as closed before it, and that was %s', period, contract_id, "
        "coalesce(previous_period, 'nothing'), coalesce(earlier, 'nothing')) FROM (SELECT contract_id, period, previous_period, "
        "lag(period) OVER (PARTITION BY contract_id ORDER BY period) AS earlier FROM closing) followed "
        "WHERE previous_period IS DISTINCT FROM earlier ORDER BY 1",
    )
    return [words for (words,) in found]
