"""What the contracts do not know of events, in the words of every command that stores some."""

from collections.abc import Iterator

from ledger.printable import printable
from ledger.workflows.unknown import Unknown

SHOWN_NAMES = 10  # accounts, models or queues of a file that no contract knows


def unknown_texts(unknown: Unknown) -> Iterator[str]:
    """What the contracts do not know, most frequent first."""
    accounts = [
        f"{printable(account)} ({count:,}{', received when none of its contracts is in force' if account in unknown.elsewhen else ''})"
        for account, count in unknown.unassigned.most_common()
    ]
    if accounts:
        yield f"no contract covers the requests of {_first(accounts)}"
    of_version: dict[tuple[str, int, str], list[str]] = {}
    for (contract_id, version, what, name), count in unknown.unpriced.most_common():
        of_version.setdefault((contract_id, version, what), []).append(f"{printable(name)} ({count:,})")
    for (contract_id, version, what), names in sorted(of_version.items()):
        yield f"{contract_id} version {version} has no {what} {_first(names)}"


def _first(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
