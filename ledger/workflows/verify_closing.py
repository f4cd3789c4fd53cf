"""Verifies a closed month: each document is what the events give that its run saw, by the contracts, intervals and days of then.

Takes an open database and a month, gives what disagrees; changes nothing. What a document says of rows that waited and of changes after the
month's end is sealed, and not computed again. Source: specification, section 8, "Reproducible".
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.documents.disagreement import Disagreement, Source, compare, compare_lines, compare_settlements, is_settlement, read_json
from ledger.documents.journal_json import postings_to_json
from ledger.documents.number import decimal_text
from ledger.documents.settlement_json import line_to_json, statement_to_json
from ledger.errors import LedgerError
from ledger.rating.rated_period import RatedPeriod
from ledger.settlement.calendar import Days
from ledger.settlement.journal import statement_postings
from ledger.settlement.period import Period, contract_period, ended_period
from ledger.settlement.statement import PostedLine
from ledger.store.causes import causes_since
from ledger.store.closings import ClosedPeriod, Closing, closings_of_period
from ledger.store.connection import Connection
from ledger.store.contracts import StoredVersion, altered_versions, stored_versions
from ledger.store.credit_notes import credit_notes
from ledger.store.database import Database
from ledger.store.seen import Run, Seen, run_of
from ledger.workflows.basis import as_recorded
from ledger.workflows.carried import Carried, adjustments_of, earlier_periods
from ledger.workflows.close import NOT_COMPARED, posted_as
from ledger.workflows.freshen import any_snapshot
from ledger.workflows.rate import unrated_words
from ledger.workflows.rate_seen import rate_seen, united_days
from ledger.workflows.statements import Known, Stated, Stopped, state_contracts
from ledger.workflows.verify_chain import inconsistencies


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedClosing:
    """A document of the month, how many lines it has, and what disagrees."""

    period: str
    contract_id: str
    number_text: str
    lines: int
    found: tuple[Disagreement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recalled:
    """A closed period as its run saw it: all versions of then, its month, and the months closed before. `looked_at` are those of them
    that may be adjusted, `changed` the periods of those in which the contract was in force."""

    closing: Closing
    run: Run
    versions: tuple[StoredVersion, ...]
    period: Period
    closed: tuple[ClosedPeriod, ...]
    looked_at: tuple[ClosedPeriod, ...]
    changed: tuple[Period, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Months that are rated together: those of one name of which the same was seen. `days` are of periods whose zone has others now, which
    are rated alone."""

    month: str
    seen: Seen
    days: Days | None


Rated = Mapping[tuple[str, str], RatedPeriod]  # by contract and month


def verify_period(database: Database, period: str, contract_id: str | None = None) -> list[VerifiedClosing]:
    """Every document of the month, or that of one contract, by contract. Raises LedgerError if there is none.

    The events of the month are classified once for all contracts whose runs saw the same; so are those of earlier months that were changed
    before the close, or are adjusted.
    """
    with any_snapshot(database) as connection:
        return closings_against_events(connection, period, contract_id)


def closings_against_events(connection: Connection, period: str, contract_id: str | None = None) -> list[VerifiedClosing]:
    """The same in the snapshot of the connection."""
    closings = closings_of_period(connection, period, contract_id)
    if not closings:
        what = "no contract has" if contract_id is None else f"contract {contract_id} has not"
        raise LedgerError(f"{what} closed {period}", cure=f"close it first: ledger close {period}", exit_code=1)
    altered = altered_versions(connection)
    recalled = [_recall(connection, closing, altered) for closing in closings]
    rated = _rate(connection, [one for one in recalled if isinstance(one, _Recalled)])
    return [
        _verified(closing, _recomputed(connection, one, rated) if isinstance(one, _Recalled) else [one])
        for closing, one in zip(closings, recalled, strict=True)
    ]


def _verified(closing: Closing, found: Sequence[Disagreement]) -> VerifiedClosing:
    return VerifiedClosing(
        period=closing.period,
        contract_id=closing.contract_id,
        number_text=closing.document.number_text,
        lines=len(closing.lines),
        found=(*found, *inconsistencies(closing)),
    )


def _of_events(place: str, posted: str, given: str) -> Disagreement:
    return Disagreement(place=place, kept=posted, given=given, source=Source.EVENTS)


def _recall(connection: Connection, closing: Closing, altered: Sequence[tuple[str, int]]) -> _Recalled | Disagreement:
    """What the close of the period went by, or what of it is not there any more."""
    contract_id, run = closing.contract_id, run_of(connection, closing.run_id)
    seen = run.contracts.get(contract_id, {})
    if changed := [version for of_contract, version in altered if of_contract == contract_id]:
        return _of_events(f"contract version {changed[0]}", "by the text that was added", "nothing: its text was altered")
    stored = {str(one.contract.version): one for one in stored_versions(connection, contract_id, read_again=True)}
    for version, content_sha256 in seen.items():
        if version not in stored or stored[version].content_sha256 != content_sha256:
            return _of_events(f"contract version {version}", f"by the text with hash {content_sha256}", "nothing: that text is not stored")
    versions = tuple(stored[version] for version in seen)
    contracts = [one.contract for one in versions]
    terms = (contract_period(contracts, closing.period) or ended_period(contracts, closing.period)) if contracts else None
    period = terms and as_recorded(terms, closing.basis)
    if period is None:
        return _of_events(
            "days", "other days than those of the contract", "nothing: the days that were recorded are not those of the month"
        )
    [closed] = earlier_periods(connection, [period]).values()
    in_force = [month for one in closed if (month := contract_period(contracts, one.period))]
    months = []
    for month in in_force:
        recorded = as_recorded(month, closing.basis)
        if recorded is None:
            return _of_events(f"days of {month.name}", "other days than those of the contract", "nothing: they were not recorded")
        if recorded != month or _is_changed(connection, closing, recorded, versions, run.seen):
            months.append(recorded)
    unchanged = {month.name for month in in_force} - {month.name for month in months}
    looked_at = tuple(one for one in closed if one.period not in unchanged)
    return _Recalled(closing=closing, run=run, versions=versions, period=period, closed=closed, looked_at=looked_at, changed=tuple(months))


def _is_changed(connection: Connection, closing: Closing, month: Period, versions: Sequence[StoredVersion], seen: Seen) -> bool:
    """Whether an earlier month may come out otherwise than it was posted: else it need not be rated to know that nothing is adjusted."""
    if any(posted.line.of is not None and posted.line.of.period == month.name for posted in closing.lines):
        return True
    _, total = causes_since(connection, month, versions, closing.period, seen)
    return total > 0


def _rate(connection: Connection, recalled: Sequence[_Recalled]) -> Rated:
    groups: defaultdict[_Group, list[Period]] = defaultdict(list)
    for one in recalled:
        contracts = [version.contract for version in one.versions]
        for period in (one.period, *one.changed):
            is_as_now = not period.pieces or period == contract_period(contracts, period.name)
            days = None if is_as_now else united_days([period])
            groups[_Group(month=period.name, seen=one.run.seen, days=days)].append(period)
    rated: dict[tuple[str, str], RatedPeriod] = {}
    for group, periods in groups.items():
        for contract_id, of_contract in rate_seen(connection, group.seen, periods, group.days).items():
            rated[contract_id, group.month] = of_contract
    return rated


def _recomputed(connection: Connection, one: _Recalled, rated: Rated) -> list[Disagreement]:
    """Where the document disagrees with what its events give."""
    contract_id = one.closing.contract_id
    earlier = {month.name: rated[contract_id, month.name] for month in one.changed}
    for name, month in earlier.items():
        if unrated := month.judged.unrated:
            return [_of_events(f"adjustments of {name}", "by known rates", f"none: {unrated_words(None, month.judged.period, unrated)}")]
    adjustments = adjustments_of(connection, (one.versions, one.period), one.looked_at, earlier, one.run.settled_at, one.run.seen)
    notes = [note for note in credit_notes(connection, contract_id) if note.carried_into == one.closing.period]
    balance_minor = (one.closed[-1].carried_out_minor if one.closed else 0) + sum(note.net_minor + note.tax_minor for note in notes)
    carried = Carried(adjustments=adjustments, carried_in_minor=balance_minor)
    known = Known(rated={contract_id: rated[contract_id, one.period.name]}, carried={contract_id: carried})
    stated = next(state_contracts([(one.versions, one.period)], known, state="closed", is_test=False), None)
    if stated is None:
        return [_of_events("document", one.closing.document.number_text, "none: the contract had ended, and nothing is adjusted")]
    if isinstance(stated, Stopped):
        return [_of_events("document", one.closing.document.number_text, f"none: {stated.problem}")]
    found = list(_against_events(one.closing, stated))
    if not found and one.closing.digest != stated.digest:
        found.append(_of_events("digest of the events", one.closing.digest, stated.digest))
    return found


def _against_events(closing: Closing, stated: Stated) -> Iterator[Disagreement]:
    document, statement = closing.document, stated.statement
    digits, given = statement.minor_digits, statement_to_json(stated.statement)
    posted, settled = ([_posted_to_json(line, digits) for line in lines] for lines in (closing.lines, posted_as(statement)))
    yield from compare_lines(posted, settled, Source.EVENTS)
    kept = read_json(document.content)
    if isinstance(kept, dict) and is_settlement(kept):  # else it is told that it is none
        given_but_lines, kept_but_lines = ({**one, "lines": []} for one in (given, kept))
        yield from compare_settlements(kept_but_lines, given_but_lines, Source.EVENTS, but=NOT_COMPARED)
    journal = postings_to_json(statement_postings(statement), digits)
    yield from compare("journal posting", postings_to_json(document.postings, digits), journal, Source.EVENTS)
    yield from compare("tax id", document.tax_id, statement.contract.parties.provider.tax_id, Source.EVENTS)
    yield from compare("contract hash of version", closing.contract_hashes, statement.contract_hashes, Source.EVENTS)


def _posted_to_json(posted: PostedLine, minor_digits: int) -> dict[str, Any]:
    """A line with how it is taxed, which its document does not say."""
    tax = posted.tax
    return line_to_json(posted.line, minor_digits) | {"tax_rate": decimal_text(tax.rate), "untaxed_credits": tax.credits_outside_scope}
