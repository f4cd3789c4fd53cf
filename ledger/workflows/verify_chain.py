"""Verifies the chains of seals: every issued document says what was sealed, and follows on the one before it.

Takes an open database, gives what disagrees by provider and document; changes nothing. Source: specification, section 8, "Reproducible".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Any
from urllib.parse import quote

from ledger.documents.disagreement import Disagreement, Source, compare, compare_lines, compare_settlements, is_settlement, read_json
from ledger.documents.journal_json import postings_to_json
from ledger.documents.number import amount_text
from ledger.documents.settlement_json import canonical_bytes, line_to_json
from ledger.errors import LedgerError
from ledger.settlement.numbering import Series
from ledger.store.chains import Link, chain_of, providers_of_documents, stray_rows
from ledger.store.closings import Closing, IssuedDocument, closing_of, document_of
from ledger.store.connection import Connection
from ledger.store.contracts import altered_versions
from ledger.store.database import Database
from ledger.workflows.freshen import any_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDisagreement:
    """What disagrees of a provider's document; without a number, of the chain or a series."""

    number_text: str | None
    disagreement: Disagreement


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedChain:
    """How many documents a provider's chain has, and what disagrees, in its order."""

    tax_id: str
    documents: int
    found: tuple[DocumentDisagreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedChains:
    """The chains by provider, and rows that belong to no chain, in words."""

    chains: tuple[VerifiedChain, ...]
    strays: tuple[str, ...]


def verify_chains(database: Database, tax_id: str | None = None) -> VerifiedChains:
    """Every provider's chain, or that of one. Raises LedgerError if that one has issued nothing."""
    with any_snapshot(database) as connection:
        return chains_against_seals(connection, tax_id)


def chains_against_seals(connection: Connection, tax_id: str | None = None) -> VerifiedChains:
    """The same in the snapshot of the connection."""
    providers = providers_of_documents(connection)
    if tax_id is not None and tax_id not in providers:
        raise LedgerError(f"the provider {tax_id} has issued no document", cure="see the tax ids: ledger verify --chain", exit_code=1)
    chains = tuple(_verify_chain(connection, one) for one in providers if tax_id in (None, one))
    altered = [
        f"version {version} of contract {contract_id}: its text is not the one that was added"
        for contract_id, version in altered_versions(connection)
    ]
    return VerifiedChains(chains=chains, strays=(*altered, *stray_rows(connection)))


def _verify_chain(connection: Connection, tax_id: str) -> VerifiedChain:
    links = chain_of(connection, tax_id)
    found = [DocumentDisagreement(number_text=number, disagreement=one) for number, one in _walk(connection, tax_id, links)]
    found += [DocumentDisagreement(number_text=None, disagreement=one) for one in _gaps(links)]
    return VerifiedChain(tax_id=tax_id, documents=len(links), found=tuple(found))


def _walk(connection: Connection, tax_id: str, links: Sequence[Link]) -> Iterator[tuple[str, Disagreement]]:
    """What disagrees of each document, by number, in the order of the chain; a document at a time is in memory."""
    position, seal = 1, None
    for link in links:
        if link.position != position:
            yield link.number_text, _of_chain("position", link.position, position)
        elif link.previous_seal != seal:
            yield link.number_text, _of_chain("previous seal", link.previous_seal, seal)
        position, seal = link.position + 1, link.seal
        yield from ((link.number_text, one) for one in _of_link(connection, tax_id, link))


def _of_link(connection: Connection, tax_id: str, link: Link) -> Sequence[Disagreement]:
    """What disagrees of the document of a link: that of a closed period, or a credit on demand."""
    if link.contract_id is not None and link.period is not None:
        closing = closing_of(connection, link.contract_id, link.period)
        assert closing is not None, "the link has a closed period, and a document"
        return inconsistencies(closing)
    document = document_of(connection, tax_id, link.number_text)
    if document is None or not link.is_credit:
        return [_of_chain("closed period", None, f"one that {link.number_text} of {tax_id} is of")]
    return _of_credit(document)


def _gaps(links: Sequence[Link]) -> Iterator[Disagreement]:
    """Numbers of each series and year that are not 1, 2, 3 ..."""
    in_order = sorted(links, key=lambda link: (link.series, link.year, link.number))
    for (series, year), group in groupby(in_order, key=lambda link: (link.series, link.year)):
        expected = 1
        for link in group:
            if link.number != expected:
                yield _of_chain(f"series {series} of {year}, number of {link.number_text}", link.number, expected)
            expected = link.number + 1


def _of_chain(place: str, found: object, expected: object) -> Disagreement:
    kept, given = ["nothing" if value is None else str(value) for value in (found, expected)]
    return Disagreement(place=place, kept=kept, given=given, source=Source.CHAIN)


def _of_credit(document: IssuedDocument) -> list[Disagreement]:
    """Where what is kept of a credit on demand disagrees with what was sealed."""
    sealed, wrong = _sealed(document)
    if sealed is None:
        return wrong
    said = sealed["settlement"]
    found = list(_against_sealed(document, sealed))
    if document.content.encode() != canonical_bytes(said):
        found.insert(0, Disagreement(place="content", kept="other bytes", given="what was sealed", source=Source.SEAL))
    return [*found, *_of_files(document, f"{said.get('contract')}-{document.number_text}")]


def inconsistencies(closing: Closing) -> list[Disagreement]:
    """Where what is kept of a closed period disagrees with what was sealed."""
    sealed, wrong = _sealed(closing.document)
    if sealed is None:
        return wrong
    if not is_settlement(sealed["settlement"]):
        return [_not_sealed("a settlement")]
    return [*_against_seal(closing, sealed), *_of_files(closing.document, closing.contract_id)]


def _sealed(document: IssuedDocument) -> tuple[dict[str, Any] | None, list[Disagreement]]:
    """What was sealed, which says something of a document; or None, and what is wrong with the seal."""
    if (digest := sha256(document.sealed).hexdigest()) != document.seal:
        return None, [_of_chain("seal", document.seal, digest)]
    sealed = read_json(document.sealed)
    if not isinstance(sealed, dict) or not isinstance(sealed.get("settlement"), dict):
        return None, [_not_sealed("a settlement")]
    return sealed, []


def _not_sealed(expected: str) -> Disagreement:
    return Disagreement(place="what is sealed", kept="something else", given=expected, source=Source.SEAL)


def _against_seal(closing: Closing, sealed: Mapping[str, Any]) -> Iterator[Disagreement]:
    document, settlement, digits = closing.document, sealed["settlement"], closing.document.minor_digits
    content = read_json(document.content)
    if not isinstance(content, dict) or not is_settlement(content):
        yield Disagreement(place="content", kept="something else", given="a settlement", source=Source.SEAL)
    else:
        different = list(compare_settlements(content, settlement, Source.SEAL))
        yield from different
        if not different and document.content.encode() != canonical_bytes(settlement):
            yield Disagreement(place="content", kept="other bytes", given="its canonical JSON", source=Source.SEAL)
    rows = [line_to_json(posted.line, digits) for posted in closing.lines]
    yield from (_as_row(one, "row of ") for one in compare_lines(rows, settlement["lines"], Source.SEAL))
    yield from _against_sealed(document, sealed)
    totals = settlement.get("totals", {})
    columns = {
        "contract": (closing.contract_id, settlement.get("contract")),
        "period": (closing.period, settlement.get("period")),
        "currency": (document.currency, settlement.get("currency")),
        "series": (document.series, Series.CREDIT_NOTE if str(totals.get("total")).startswith("-") else Series.INVOICE),
        "total": (amount_text(document.total_minor, digits), totals.get("total")),
        "carried out": (amount_text(closing.carried_out_minor, digits), totals.get("carried_out")),
        "contract hash of version": ({str(one): digest for one, digest in closing.contract_hashes.items()}, sealed.get("contract_hashes")),
    }
    for place, (kept, given) in columns.items():
        yield from compare(place, kept, given, Source.SEAL)


def _against_sealed(document: IssuedDocument, sealed: Mapping[str, Any]) -> Iterator[Disagreement]:
    """What every document has, whatever it is."""
    yield from compare("journal posting", postings_to_json(document.postings, document.minor_digits), sealed.get("journal"), Source.SEAL)
    for place, kept, key in (
        ("number", document.number_text, "number"),
        ("tax id", document.tax_id, "tax_id"),
        ("previous seal", document.previous_seal, "previous_seal"),
    ):
        yield from compare(place, kept, sealed.get(key), Source.SEAL)


def _as_row(one: Disagreement, before: str) -> Disagreement:
    """The lines stand in the document, and each in a row of its own."""
    return Disagreement(place=f"{before}{one.place}", kept=one.kept, given=one.given, source=one.source)


def _of_files(document: IssuedDocument, of: str) -> Iterator[Disagreement]:
    """Files that are not those whose SHA-256 is kept; the JSON that is named after `of` is the content of the document."""
    name = quote(of, safe="")
    for file in document.files:
        if (digest := sha256(file.content).hexdigest()) != file.sha256:
            yield _of_chain(f"file {file.name}", digest, file.sha256)
    written = {file.name: file.content for file in document.files}
    if written.get(f"{name}.json") != document.content.encode():
        yield _of_chain(f"file {name}.json", "other content" if f"{name}.json" in written else None, "the content of the document")
