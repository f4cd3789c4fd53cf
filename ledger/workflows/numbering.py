"""How a provider's documents are numbered: set for those that are issued from now on, and shown. What is issued stays.

Source: specification, section 8; decision record issued-documents.
"""

from collections.abc import Sequence

from ledger.errors import LedgerError
from ledger.settlement.numbering import Series, beside_digits, format_problem
from ledger.store.connection import Connection
from ledger.store.contracts import stored_versions
from ledger.store.database import Database
from ledger.store.journal import issuing_providers
from ledger.store.numbering import SeriesNumbering, first_numbers, lock_numbers, numbering_format, series_numbering, set_numbering


def set_number_format(database: Database, tax_id: str, series: Series, number_format: str, *, author: str) -> SeriesNumbering:
    """From now on numbers of the series are written so. Raises LedgerError for a format that does not number documents, or that can write a
    number of the other series, and for a provider that no contract names."""
    if problem := format_problem(number_format):
        cure = "write one such as 'INV-{year}-{number:06}'"
        raise LedgerError(f"the format {number_format!r} {problem}", cure=cure, exit_code=2)
    with database.begin() as connection:
        _known_provider(connection, tax_id)
        lock_numbers(connection, tax_id)
        _refuse_alike(connection, tax_id, series, number_format)
        set_numbering(connection, tax_id, series, number_format, set_at=database.now(), author=author)
        return series_numbering(connection, tax_id, series)


def numberings(database: Database) -> Sequence[SeriesNumbering]:
    """How the numbers of every provider are written, by tax id and series."""
    with database.begin() as connection:
        return [series_numbering(connection, tax_id, series) for tax_id in _providers(connection) for series in Series]


def _providers(connection: Connection) -> list[str]:
    named = {one.contract.parties.provider.tax_id for one in stored_versions(connection)}
    return sorted(named.union(issuing_providers(connection)))


def _known_provider(connection: Connection, tax_id: str) -> None:
    known = _providers(connection)
    if tax_id not in known:
        cure = f"known are {', '.join(known)}" if known else "add a contract of the provider first: ledger contract add FILE"
        raise LedgerError(f"no contract has a provider {tax_id}", cure=cure)


def _refuse_alike(connection: Connection, tax_id: str, series: Series, number_format: str) -> None:
    """Refuses a format that could write a number of the other series, which has its own 1, 2, 3."""
    [other] = [one for one in Series if one is not series]
    for written in (numbering_format(connection, tax_id, other), *first_numbers(connection, tax_id, other)):
        if beside_digits(written) == beside_digits(number_format):
            words = {Series.INVOICE: "invoices", Series.CREDIT_NOTE: "credit notes"}
            raise LedgerError(
                f"{number_format} could give one number to two documents: {words[other]} are written as {written}",
                cure="let the two series differ in letters or signs",
            )
