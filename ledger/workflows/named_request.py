"""What stops a command that names a request by its id: there is none, or several accounts have one.

Takes what was found and gives the error, for its caller to raise.
"""

from collections.abc import Iterable

from ledger.errors import LedgerError
from ledger.printable import brief


def no_request(request_id: str, account: str | None, *, cure: str) -> LedgerError:
    """Nobody, or not the account that was named, has a request of this id."""
    of_account = f" of the account {brief(account)}" if account else ""
    return LedgerError(f"there is no request {brief(request_id)}{of_account}", cure=cure)


def several_accounts(request_id: str, accounts: Iterable[str]) -> LedgerError:
    """The id alone does not say which request is meant."""
    return LedgerError(several_words(request_id, accounts), cure="name one with --account", exit_code=2)


def several_words(request_id: str, accounts: Iterable[str]) -> str:
    """The same in words, for one of many ids."""
    return f"several accounts have a request {brief(request_id)}: {', '.join(map(brief, accounts))}"
