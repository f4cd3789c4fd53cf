"""Closed periods: documents with numbers and seals, their lines, journal and files, kept once and read back as they were.

A transaction that issues has the lock of `next_number`, and a snapshot that is younger than it. Source: specification, section 8; decision
record issued-documents.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from ledger.settlement.journal import Posting
from ledger.settlement.numbering import Series
from ledger.settlement.statement import Adjusted, Cause, CauseKind, InvoiceLine, LineKind, PostedLine, TaxTerms
from ledger.store.connection import Connection, column_list, driver_cursor, execute, fetch, fetch_as
from ledger.store.numbering import lock_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedFile:
    """A file of a document, and the SHA-256 that was kept with it."""

    name: str
    content: bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedDocument:
    """A numbered and sealed document. `content` is its canonical JSON, `sealed` the bytes whose SHA-256 in hexadecimal is `seal`.

    `position` counts the provider's documents from 1, `number` those of the series and year; `issued_on` is the day in the contract's zone.
    """

    tax_id: str
    series: Series
    year: int
    number: int
    number_text: str
    position: int
    currency: str
    minor_digits: int
    total_minor: int
    issued_at: datetime
    issued_on: date
    author: str
    content: str
    previous_seal: str | None
    seal: str
    sealed: bytes
    postings: tuple[Posting, ...]
    files: tuple[IssuedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A period as it is closed by a document: the run that saw it, what else the figures follow from (`basis`, JSON without floats), the
    content hash of each version in force, and its lines in order."""

    contract_id: str
    period: str
    run_id: int
    digest: str
    basis: Mapping[str, Any]
    contract_hashes: Mapping[int, str]
    carried_out_minor: int
    lines: tuple[PostedLine, ...]
    document: IssuedDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedPeriod:
    """What there is to know of a closed period without its lines."""

    contract_id: str
    period: str
    tax_id: str
    number_text: str
    series: Series
    run_id: int
    currency: str
    minor_digits: int
    total_minor: int
    carried_out_minor: int
    issued_at: datetime
    digest: str
    contract_hashes: Mapping[int, str]


_OF_CLOSING, _OF_DOCUMENT = ("contract_id", "period"), ("tax_id", "number_text")
_DOCUMENT = tuple(name for name in IssuedDocument.__slots__ if name not in ("postings", "files"))
_KEY = ("version", "model", "variant", "queue", "forfeited", "band", "token", "multiplier", "rate")  # of a line, as it is called there
_LINE = ("kind", "of_period", "of_kind", *_KEY, "quantity", "amount_minor", "tax_rate", "credits_outside_scope", "causes", "causes_total")


def issued_file(name: str, content: bytes) -> IssuedFile:
    """A file as it is about to be issued."""
    return IssuedFile(name=name, content=content, sha256=sha256(content).hexdigest())


def next_number(connection: Connection, tax_id: str, series: Series, year: int) -> int:
    """The number that the next document of the provider's series and year has, from 1. Nobody else is given one of this provider before the
    transaction ends, and one that is not used is given again. A snapshot taken before the lock may not see the last number: what it would
    issue is refused by the database."""
    lock_numbers(connection, tax_id)
    [(number,)] = fetch(
        connection,
        "SELECT coalesce(max(number), 0) + 1 FROM issued_document WHERE (tax_id, series, year) = (%(tax_id)s, %(series)s, %(year)s)",
        {"tax_id": tax_id, "series": series, "year": year},
    )
    return int(number)


def chain_head(connection: Connection, tax_id: str) -> tuple[int, str] | None:
    """Position and seal of the last document that the provider issued, in whatever series; None before the first."""
    rows = fetch(
        connection,
        "SELECT position, seal FROM issued_document WHERE tax_id = %(tax_id)s ORDER BY position DESC LIMIT 1",
        {"tax_id": tax_id},
    )
    return rows[0] if rows else None


def keep_document(connection: Connection, document: IssuedDocument) -> None:
    """Issues the document with its postings and files. What it is for comes in the same transaction, whose end checks that all is there."""
    of_document = (document.tax_id, document.number_text)
    _insert(connection, "issued_document", _DOCUMENT, [tuple(getattr(document, name) for name in _DOCUMENT)])
    postings = [
        (*of_document, position, one.account, one.amount_minor, one.memo) for position, one in enumerate(document.postings, start=1)
    ]
    _insert(connection, "journal_posting", (*_OF_DOCUMENT, "position", "account", "amount_minor", "memo"), postings)
    files = [(*of_document, one.name, one.content, one.sha256) for one in document.files]
    _insert(connection, "issued_file", (*_OF_DOCUMENT, "name", "content", "sha256"), files)


def keep_closing(connection: Connection, closing: Closing) -> None:
    """Issues the document and closes its period, whose draft is gone then."""
    of_closing, of_document = (closing.contract_id, closing.period), (closing.document.tax_id, closing.document.number_text)
    latest = fetch(connection, "SELECT max(period) FROM closing WHERE contract_id = %(contract_id)s", {"contract_id": closing.contract_id})
    hashes = {str(version): content_sha256 for version, content_sha256 in closing.contract_hashes.items()}
    keep_document(connection, closing.document)
    figures = (closing.run_id, closing.digest, Jsonb(dict(closing.basis)), Jsonb(hashes), closing.carried_out_minor)
    columns = ("previous_period", "run_id", "digest", "basis", "contract_hashes", "carried_out_minor")
    _insert(connection, "closing", (*_OF_CLOSING, *_OF_DOCUMENT, *columns), [(*of_closing, *of_document, latest[0][0], *figures)])
    lines = [(*of_closing, position, *_line_values(posted)) for position, posted in enumerate(closing.lines, start=1)]
    _insert(connection, "invoice_line", (*_OF_CLOSING, "position", *_LINE), lines)
    execute(
        connection,
        "DELETE FROM settlement WHERE (contract_id, period) = (%(contract_id)s, %(period)s)",
        {"contract_id": closing.contract_id, "period": closing.period},
    )


def closed_periods(connection: Connection, contract_ids: Sequence[str] | None) -> dict[str, tuple[ClosedPeriod, ...]]:
    """The closed periods of the contracts (None: of all), by contract and in order; contracts without any are left out."""
    found: defaultdict[str, list[ClosedPeriod]] = defaultdict(list)
    for one in fetch_as(
        connection,
        _closed_period,
        "SELECT contract_id, period, tax_id, number_text, series, run_id, currency, minor_digits, total_minor, "
        "carried_out_minor, issued_at, digest, "
        "contract_hashes FROM closing JOIN issued_document USING (tax_id, number_text) WHERE %(contract_ids)s::varchar[] IS NULL "
        "OR contract_id = ANY (%(contract_ids)s) "
        "ORDER BY contract_id, period",
        {"contract_ids": None if contract_ids is None else list(contract_ids)},
    ):
        found[one.contract_id].append(one)
    return {contract_id: tuple(periods) for contract_id, periods in found.items()}


def posted_lines(connection: Connection, contract_id: str, before: str | None = None) -> dict[str, tuple[PostedLine, ...]]:
    """What has been posted for each month of the contract (by documents of months `before` one): its own lines, then the adjustments of
    it, in the order of issue."""
    found: defaultdict[str, list[PostedLine]] = defaultdict(list)
    for period, posted in _lines(connection, contract_id):
        if before is not None and period >= before:
            break
        found[period if posted.line.of is None else posted.line.of.period].append(posted)
    return {period: tuple(lines) for period, lines in found.items()}


def document_of(connection: Connection, tax_id: str, number_text: str) -> IssuedDocument | None:
    """A document with its postings and files, just as they were kept; None if there is none of this number."""
    query = sql.SQL("SELECT {columns} FROM issued_document WHERE (tax_id, number_text) = (%(tax_id)s, %(number_text)s)")
    rows = fetch(connection, query.format(columns=column_list(_DOCUMENT)), {"tax_id": tax_id, "number_text": number_text})
    if not rows:
        return None
    values = dict(zip(_DOCUMENT, rows[0], strict=True))
    exact = {"series": Series(values["series"]), "total_minor": int(values["total_minor"])}
    parts = {"postings": _postings(connection, tax_id, number_text), "files": issued_files(connection, tax_id, number_text)}
    return IssuedDocument(**values | exact | parts)


def closing_of(connection: Connection, contract_id: str, period: str) -> Closing | None:
    """The closed period with its lines and its document, just as they were kept; None if it is not closed."""
    rows = fetch(
        connection,
        "SELECT run_id, digest, basis, contract_hashes, carried_out_minor, tax_id, number_text FROM closing "
        "WHERE (contract_id, period) = (%(contract_id)s, %(period)s)",
        {"contract_id": contract_id, "period": period},
    )
    if not rows:
        return None
    [(run_id, digest, basis, contract_hashes, carried_out_minor, tax_id, number_text)] = rows
    document = document_of(connection, tax_id, number_text)
    if document is None:  # somebody has removed it
        return None
    return Closing(
        contract_id=contract_id,
        period=period,
        run_id=run_id,
        digest=digest,
        basis=basis,
        contract_hashes=_by_version(contract_hashes),
        carried_out_minor=int(carried_out_minor),
        lines=tuple(posted for _, posted in _lines(connection, contract_id, period)),
        document=document,
    )


def closings_of_period(connection: Connection, period: str, contract_id: str | None = None) -> tuple[Closing, ...]:
    """The closed period of every contract that has closed it, or of one, by contract."""
    rows = fetch(
        connection,
        "SELECT contract_id FROM closing WHERE period = %(period)s AND (%(contract_id)s::varchar IS NULL OR contract_id = %(contract_id)s) "
        "ORDER BY contract_id",
        {"period": period, "contract_id": contract_id},
    )
    found = (closing_of(connection, of_contract, period) for (of_contract,) in rows)
    return tuple(closing for closing in found if closing is not None)


def issued_files(connection: Connection, tax_id: str, number_text: str) -> tuple[IssuedFile, ...]:
    """The files of a document, by name."""
    return tuple(
        fetch_as(
            connection,
            IssuedFile,
            "SELECT name, content, sha256 FROM issued_file WHERE (tax_id, number_text) = (%(tax_id)s, %(number_text)s) ORDER BY name",
            {"tax_id": tax_id, "number_text": number_text},
        )
    )


def _insert(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    statement = sql.SQL("INSERT INTO {table} ({columns}) VALUES ({values})").format(
        table=sql.Identifier(table), columns=column_list(columns), values=sql.SQL(", ").join([sql.Placeholder()] * len(columns))
    )
    with driver_cursor(connection) as cursor:
        cursor.executemany(statement, rows)


def _line_values(posted: PostedLine) -> tuple[Any, ...]:
    line, of, tax = posted.line, posted.line.of, posted.tax
    assert of is None or of.tax == tax, "an adjustment is taxed as what it adjusts"
    causes = None if of is None else Jsonb([[cause.kind, cause.ref] for cause in of.causes])
    key = (getattr(line, name) for name in _KEY)
    amounts = (line.quantity, line.amount_minor, tax.rate, tax.credits_outside_scope)
    return (line.kind, of and of.period, of and of.kind, *key, *amounts, causes, of and of.causes_total)


def _lines(connection: Connection, contract_id: str, period: str | None = None) -> list[tuple[str, PostedLine]]:
    """The lines of the contract's closed periods, or of one, with the period that each stands in, in order."""
    query = sql.SQL(
        "SELECT line.period, number_text, {columns} FROM invoice_line line "
        "LEFT JOIN closing ON (closing.contract_id, closing.period) = (line.contract_id, of_period) "
        "WHERE line.contract_id = %(contract_id)s AND (%(period)s::varchar IS NULL OR line.period = %(period)s) "
        "ORDER BY line.period, line.position"
    ).format(columns=sql.SQL(", ").join(sql.Identifier("line", name) for name in _LINE))
    rows = fetch(connection, query, {"contract_id": contract_id, "period": period})
    return [(own, _posted_line(number_text, dict(zip(_LINE, values, strict=True)))) for own, number_text, *values in rows]


def _posted_line(adjusted_number: str | None, values: Mapping[str, Any]) -> PostedLine:
    tax = TaxTerms(rate=values["tax_rate"], credits_outside_scope=values["credits_outside_scope"])
    of = None
    if adjusted_number is not None:
        of = Adjusted(
            period=values["of_period"],
            invoice=adjusted_number,
            kind=LineKind(values["of_kind"]),
            tax=tax,
            causes=tuple(Cause(kind=CauseKind(kind), ref=ref) for kind, ref in values["causes"]),
            causes_total=values["causes_total"],
        )
    line = InvoiceLine(
        **{name: values[name] for name in _KEY},
        kind=LineKind(values["kind"]),
        quantity=None if values["quantity"] is None else int(values["quantity"]),
        amount_minor=int(values["amount_minor"]),
        of=of,
    )
    return PostedLine(line=line, tax=tax)


def _postings(connection: Connection, tax_id: str, number_text: str) -> tuple[Posting, ...]:
    rows = fetch(
        connection,
        "SELECT account, amount_minor, memo FROM journal_posting "
        "WHERE (tax_id, number_text) = (%(tax_id)s, %(number_text)s) ORDER BY position",
        {"tax_id": tax_id, "number_text": number_text},
    )
    return tuple(Posting(account=account, amount_minor=int(amount_minor), memo=memo) for account, amount_minor, memo in rows)


def _closed_period(**columns: Any) -> ClosedPeriod:
    exact = {name: int(columns[name]) for name in ("total_minor", "carried_out_minor")}
    return ClosedPeriod(
        **columns | exact | {"series": Series(columns["series"]), "contract_hashes": _by_version(columns["contract_hashes"])}
    )


def _by_version(contract_hashes: Mapping[str, str]) -> dict[int, str]:
    return {int(version): content_sha256 for version, content_sha256 in contract_hashes.items()}
