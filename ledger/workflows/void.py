"""Void: withdraw the current revision of a request, or of many. Nothing is deleted; withdrawing twice is harmless.

Source: specification, section 2, "Corrections".
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

from ledger.errors import LedgerError
from ledger.printable import brief
from ledger.spreadsheet import delimiter_of
from ledger.store.cells import change_events
from ledger.store.connection import Connection
from ledger.store.database import Database
from ledger.store.events import Revision, add_void, latest_revisions, lock_request
from ledger.store.histories import accounts_of_request
from ledger.store.other_ids import requests_by_other_id, spellings
from ledger.store.quarantine import RowState
from ledger.store.withdrawals import (
    RequestFilter,
    RequestGroup,
    ambiguous_ids,
    choose_by_filter,
    choose_by_ids,
    count_chosen,
    group_chosen,
    lock_all_requests,
    sample_chosen,
    unknown_ids,
    withdraw_chosen,
)
from ledger.workflows.named_account import account_cure
from ledger.workflows.named_request import no_request, other_request, several_accounts, several_words

LONGEST_ID = 200  # characters
SHOWN = 5
NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Voided:
    """The revision that is withdrawn; `now` is False if it was before."""

    account: str
    request_id: str
    revision: int
    now: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IdFile:
    """Requests by their ids: a file of one id a line, or CSV with the columns request_id and, if need be, account. `account` is that of
    ids without one; ids that no request has are left out if `skip_unknown`."""

    path: Path
    account: str | None = None
    skip_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidedMany:
    """How many requests are withdrawn (or would be), how many were before, how many ids are unknown; and what they are."""

    requests: int
    withdrawn_before: int
    unknown: int
    groups: tuple[RequestGroup, ...]
    sample: tuple[tuple[str, str, datetime], ...]


def void_request(database: Database, request_id: str, *, account: str | None, reason: str, author: str) -> Voided:
    """Withdraw the request. Raises LedgerError if there is none, or more than one account has it."""
    with database.begin() as connection:
        current = the_request(connection, request_id, account)
        done = add_void(connection, current, kind="void", reason=reason, author=author, voided_at=database.now())
        change_events(connection, [(current.account, current.fields["received_at"], -1)] if done else [])
        return Voided(account=current.account, request_id=current.request_id, revision=current.revision, now=done)


def the_request(connection: Connection, request_id: str, account: str | None) -> Revision:
    """The latest revision of the request of this id, with or without the prefix of an engine, locked until the transaction ends."""
    for one in spellings(request_id):
        if found := latest_revisions(connection, one, account):
            if len(found) > 1:
                raise several_accounts(one, (revision.account for revision in found))
            lock_request(connection, found[0].account, one)
            return latest_revisions(connection, one, found[0].account)[0]
        if others := requests_by_other_id(connection, one, account=account, most=1):
            raise no_request(request_id, account, cure=account_cure(connection, account) or other_request(one, others[0]))
        if accounts_of_request(connection, one, rows=RowState.ALL):  # a refused row is meant, and no other request
            break
    raise no_request(request_id, account, cure=account_cure(connection, account) or "check the id and the account")


def void_many(
    database: Database,
    which: RequestFilter | IdFile,
    *,
    reason: str,
    author: str,
    dry_run: bool = False,
    expected: VoidedMany | None = None,
) -> VoidedMany:
    """Withdraw all of the requests in one transaction, or (dry run) only say which they are.

    Raises LedgerError, and withdraws nothing, if the file cannot be read, an id is unknown (unless it may be) or several accounts have it,
    no request is meant, the filter names a file that was never loaded, or there are not as many requests as `expected`.
    """
    with database.begin() as connection:
        if not dry_run:
            lock_all_requests(connection)
        unknown = _choose(connection, which)
        standing, before = count_chosen(connection)
        if not standing + before:
            raise _nothing_fits(connection, which.account)
        found = VoidedMany(
            requests=standing,
            withdrawn_before=before,
            unknown=unknown,
            groups=tuple(group_chosen(connection)),
            sample=tuple(sample_chosen(connection, SHOWN)),
        )
        if expected is not None and (standing, before) != (expected.requests, expected.withdrawn_before):
            raise LedgerError(
                f"meanwhile it is {standing:,} requests, and no longer {expected.requests:,}; nothing was withdrawn",
                cure="look again, when loads and corrections are done",
            )
        if not dry_run:
            withdraw_chosen(connection, reason=reason, author=author, at=database.now())
        return found


def _nothing_fits(connection: Connection, account: str | None) -> LedgerError:
    if cure := account_cure(connection, account):
        return LedgerError(f"no request is of the account {brief(account or '')}; nothing was withdrawn", cure=cure)
    return LedgerError("no request fits; nothing was withdrawn", cure="check what you ask for; ledger status shows what is there")


def _choose(connection: Connection, which: RequestFilter | IdFile) -> int:
    """Choose the requests; gives how many ids are unknown."""
    if isinstance(which, RequestFilter):
        if not choose_by_filter(connection, which):
            raise LedgerError(f"no file named {brief(which.source or '')} was loaded", cure="name it without folders, as it was loaded")
        return 0
    impossible: list[str] = []
    choose_by_ids(connection, _possible(read_ids(which), impossible))
    count, named = unknown_ids(connection, NAMED)
    if ambiguous := ambiguous_ids(connection, NAMED):
        lines = "\n".join(several_words(one, accounts) for one, accounts in ambiguous)
        raise LedgerError(f"{lines}\nnothing was withdrawn", cure="add a column account to the file, or name one with --account")
    if (count or impossible) and not which.skip_unknown:
        names = [brief(one) + (f" of the account {brief(account)}" if account else "") for account, one in named]
        names = [*map(brief, impossible), *names][:NAMED]
        more = count + len(impossible) - len(names)
        raise LedgerError(
            f"there is no request {', '.join(names)}" + (f" and {more:,} more" if more else "") + "; nothing was withdrawn",
            cure=account_cure(connection, which.account) or "correct the file, or withdraw the others with --skip-unknown",
        )
    return count + len(impossible)


def _possible(ids: Iterator[tuple[str | None, str]], impossible: list[str]) -> Iterator[tuple[str | None, str]]:
    """The ids that a request can have; the others are put into the list."""
    for account, request_id in ids:
        if any(len(one) > LONGEST_ID or "\0" in one for one in (account or "", request_id)):
            impossible.append(request_id)
        else:
            yield account, request_id


def read_ids(file: IdFile) -> Iterator[tuple[str | None, str]]:
    """Account, if it is known, and id of each request in the file. Raises LedgerError with the place of what is wrong."""
    try:
        with file.path.open(encoding="utf-8-sig", newline="") as stream:
            first = next(stream, "")
            stream.seek(0)
            delimiter = delimiter_of(first)
            names = next(csv.reader([first], delimiter=delimiter), [])
            if "request_id" in names:
                yield from _ids_of_csv(file, csv.reader(stream, delimiter=delimiter, strict=True), names)
            else:
                yield from _ids_of_lines(file, stream)
    except OSError as error:
        raise LedgerError(f"{file.path}: {error.strerror}", cure="name a file that can be read") from error
    except UnicodeDecodeError as error:
        raise LedgerError(f"{file.path}: not UTF-8", cure="save it in UTF-8") from error
    except csv.Error as error:
        raise LedgerError(f"{file.path}: {error}", cure="write CSV with the columns account and request_id") from error


def _ids_of_csv(file: IdFile, reader: Iterator[list[str]], names: list[str]) -> Iterator[tuple[str | None, str]]:
    next(reader)
    place = names.index("request_id")
    account_place = names.index("account") if "account" in names else None
    for number, cells in enumerate(reader, start=2):
        if not any(cells):
            continue
        if len(cells) != len(names):
            raise LedgerError(f"{file.path}: row {number} has {len(cells)} cells under {len(names)} columns", cure="correct the file")
        account = cells[account_place] if account_place is not None else ""
        yield account or file.account, cells[place]


def _ids_of_lines(file: IdFile, stream: IO[str]) -> Iterator[tuple[str | None, str]]:
    for line in stream:
        if request_id := line.rstrip("\r\n"):
            yield file.account, request_id
