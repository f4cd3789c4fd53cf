"""What stops a command that names a request by its id: there is none, several accounts have one, or several are meant.

Takes what was found and gives the error, for its caller to raise.
"""

import shlex
from collections.abc import Iterable, Sequence

from ledger.errors import LedgerError
from ledger.printable import brief, printable
from ledger.store.other_ids import FoundRequest

# A column of an observation that has the id that was asked for, as its request's.
LINK_WORDS = {"record_id": "its row", "request_id": "its call id", "trace": "its trace", "header": "its header"}


def request_command(command: str, request_id: str, account: str | None = None, options: str = "") -> str:
    """The command line that names the request, with the options; the id stands last where it would be taken for one."""
    name = shlex.quote(printable(request_id))
    words = [f"--account {shlex.quote(printable(account))}" if account else "", options]
    return " ".join(filter(None, (command, *words, "--", name) if request_id.startswith("-") else (command, name, *words)))


def no_request(request_id: str, account: str | None, *, cure: str) -> LedgerError:
    """Nobody, or not the account that was named, has a request of this id."""
    of_account = f" of the account {brief(account)}" if account else ""
    return LedgerError(f"there is no request {brief(request_id)}{of_account}", cure=cure)


def other_request(other_id: str, found: FoundRequest) -> str:
    """What to do about an id that is none of a request, but that of one of its rows: the request to name, if it can be only one."""
    if found.of > 1:
        return f"it is in rows of {found.of:,} requests: {request_command('ledger explain', other_id)} lists them"
    what = LINK_WORDS[found.link].replace("its ", "the ")
    return f"it is {what} of the request {request_command('', found.request_id, found.account)}: name that"


def several_accounts(request_id: str, accounts: Iterable[str]) -> LedgerError:
    """The id alone does not say which request is meant."""
    return LedgerError(several_words(request_id, accounts), cure="name one with --account", exit_code=2)


def several_requests(other_id: str, found: Sequence[FoundRequest]) -> LedgerError:
    """The id is none of a request, but several have a row with it; `found` are the first of them, at least two."""
    names = [f"  {brief(one.account) or 'account not known'}  {brief(one.request_id)}  ({LINK_WORDS[one.link]})" for one in found]
    more = found[0].of - len(found)
    lines = [f"{brief(other_id)} is in rows of {found[0].of:,} requests", *names, *([f"  and {more:,} more"] if more else [])]
    return LedgerError("\n".join(lines), cure="name one: ledger explain REQUEST_ID --account NAME", exit_code=2)


def several_words(request_id: str, accounts: Iterable[str]) -> str:
    """The same in words, for one of many ids."""
    return f"several accounts have a request {brief(request_id)}: {', '.join(map(brief, accounts))}"
