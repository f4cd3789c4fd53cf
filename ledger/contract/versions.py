"""What must hold between versions and between contracts. Takes contracts with the names of their files, gives diagnostics.

Source: specification, section 3, "Rules the validator proves": what versions may not change, spans that do not overlap, accounts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ledger.contract.diagnostic import Diagnostic, Finding, Path
from ledger.contract.model import Contract
from ledger.contract.reader import Places, diagnostic_of
from ledger.contract.schedule import Overlap, Stretch, overlaps, stretches


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """The versions of one contract by number, the first of each number, with the files they came from. `stored` are those that were added
    before and can no longer be changed: what is wrong with them and another one is told of the other one."""

    files: dict[int, str] = field(default_factory=dict)
    contracts: dict[int, Contract] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)


def check_versions(
    contracts: Sequence[tuple[str, Contract]],
    places: Mapping[str, Places] | None = None,
    *,
    stored: Sequence[tuple[str, Contract]] = (),
    complete: bool = True,
) -> tuple[Diagnostic, ...]:
    """The rules that these versions of one or several contracts break, together and with those that are `stored`, each with the name of
    its file; `places`, by file, gives the lines to show.

    `complete` says that these are all the versions there are; if not, a version by itself may replace one that is not given.
    The same version twice is no fault if the content is the same. Days are local days of each contract: where an account moves
    between contracts of different zones, the instants decide when the version is added.
    """
    places = places or {}
    found: list[tuple[str, Finding]] = []
    by_id: dict[str, _Versions] = {}
    for file, contract in stored:
        versions = by_id.setdefault(contract.id, _Versions())
        versions.contracts[contract.version], versions.files[contract.version] = contract, file
        versions.stored.add(contract.version)
    for file, contract in contracts:
        versions = by_id.setdefault(contract.id, _Versions())
        if contract.version not in versions.contracts:
            versions.contracts[contract.version] = contract
            versions.files[contract.version] = file
        elif versions.contracts[contract.version] != contract:
            found.append((file, _taken(contract, versions.files[contract.version])))
    for versions in by_id.values():
        found += _check_contract(versions, complete=complete or len(versions.contracts) > 1)
    found += _accounts_in_two_contracts(by_id)
    return tuple(diagnostic_of(finding, file, places.get(file, Places(None))) for file, finding in found)


def _taken(contract: Contract, file: str) -> Finding:
    return Finding(
        code="version_taken",
        path=("version",),
        found=f"version {contract.version} of `{contract.id}`, which {file} is too, with other content",
        expected="one file for each version of a contract",
        cure=f"write another `id` if this is another contract; else the next number, with `replaces: {contract.version}` if it corrects "
        "that version",
    )


def _check_contract(versions: _Versions, *, complete: bool) -> Iterator[tuple[str, Finding]]:
    numbers = sorted(versions.contracts)
    first = versions.contracts[min(versions.stored or numbers)]
    for number in numbers:
        contract = versions.contracts[number]
        for finding in _changed_terms(first, contract):
            yield versions.files[number], finding
        if complete and contract.replaces is not None and contract.replaces not in versions.contracts:
            known = ", ".join(str(other) for other in numbers if other != number) or "none"
            yield (
                versions.files[number],
                Finding(
                    code="unknown_version",
                    path=("replaces",),
                    found=f"a replacement of version {contract.replaces}, which is not known",
                    expected=f"one of the versions of `{contract.id}`: {known}",
                    cure="correct the number, or give the file of that version too",
                ),
            )
    for overlap in overlaps(list(versions.contracts.values())):
        yield _overlap(versions, overlap)


def _overlap(versions: _Versions, overlap: Overlap) -> tuple[str, Finding]:
    """Told of the highest version that can still be changed."""
    at = max(set(overlap.versions) - versions.stored or overlap.versions)
    others = [number for number in overlap.versions if number != at]
    cure = f"change its days, or give it a number above {others[-1]} and `replaces: {others[-1]}`"
    if at > others[-1]:
        cure = f"write `replaces: {others[0]}` in version {at}, which then stands for it on the days that both cover"
        if not versions.stored.intersection(others):
            cure += f"; or, before it is added, end version {' and '.join(map(str, others))} with `until: {overlap.from_on}`"
    finding = Finding(
        code="versions_overlap",
        path=("effective",),
        found=f"version {at} in force together with version {' and '.join(map(str, others))} from {overlap.from_on}",
        expected="one version in force on each day",
        cure=cure,
    )
    return versions.files[at], finding


def _changed_terms(first: Contract, contract: Contract) -> Iterator[Finding]:
    """A provider is the same if name and tax number are: its address may change."""
    terms: list[tuple[Path, str, str]] = [
        (("calendar", "timezone"), first.calendar.timezone, contract.calendar.timezone),
        (("calendar", "billing_period"), first.calendar.billing_period, contract.calendar.billing_period),
        (("money", "currency"), first.money.currency, contract.money.currency),
        (("money", "rounding"), first.money.rounding, contract.money.rounding),
        (("parties", "provider", "name"), first.parties.provider.name, contract.parties.provider.name),
        (("parties", "provider", "tax_id"), first.parties.provider.tax_id, contract.parties.provider.tax_id),
    ]
    for path, before, now in terms:
        if before != now:
            yield Finding(
                code="fixed_term_changed",
                path=path,
                found=f"`{now}`, where version {first.version} has `{before}`",
                expected="the same in all versions of a contract",
                cure="keep it, or end this contract and begin one with another id",
            )


def _accounts_in_two_contracts(by_id: Mapping[str, _Versions]) -> Iterator[tuple[str, Finding]]:
    """One finding for each pair of versions and account, told of one that can still be changed; a contract whose own versions overlap is
    looked at when they do not."""
    holders: dict[str, list[tuple[Stretch, _Versions]]] = {}
    for versions in by_id.values():
        contracts = list(versions.contracts.values())
        for stretch in stretches(contracts) if not overlaps(contracts) else ():
            for account in versions.contracts[stretch.version].parties.customer.accounts:
                holders.setdefault(account, []).append((stretch, versions))
    for account, held in holders.items():
        for pair in combinations(held, 2):
            (mine, ours), (yours, theirs) = sorted(pair, key=lambda one: one[0].version not in one[1].stored)
            from_on = max(mine.from_on, yours.from_on)
            ends = [end for end in (mine.until_on, yours.until_on) if end is not None]
            if ours is not theirs and (not ends or from_on < min(ends)):
                first, second = ours.contracts[mine.version], theirs.contracts[yours.version]
                number = max(ours.contracts) + 1 if first.version in ours.stored else None
                yield theirs.files[yours.version], _shared_account(first, second, account, str(from_on), number)


def _shared_account(first: Contract, second: Contract, account: str, from_on: str, number: int | None) -> Finding:
    """`number` is that of the next version of the first contract if the first can no longer be changed."""
    cure = "remove it from one of them, or let one end where the other begins"
    if number is not None:
        own = first.parties.customer.accounts
        instead = "without this account" if len(own) > 1 else "with another account in its place"
        until = "" if first.effective.until is None else f", until: {first.effective.until}"
        cure = f"write another account or other days; or, if the account moves, first add version {number} of `{first.id}`, with "
        cure += f"`replaces: {first.version}`, `effective: {{from: {from_on}{until}}}` and {instead}"
    at = second.parties.customer.accounts.index(account)
    return Finding(
        code="account_in_two_contracts",
        path=("parties", "customer", "accounts", at),
        found=f"the account `{account}` from {from_on}, which then belongs to version {first.version} of `{first.id}` too",
        expected="an account in one contract at a time",
        cure=cure,
    )
