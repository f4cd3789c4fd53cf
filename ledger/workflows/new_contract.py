"""A new contract from the template of its kind: what differs between customers in, the text of a contract file out, without a database.

Templates are complete contracts in `contracts/templates`, one for each kind and language. Source: specification, sections 3 and 9.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from ledger.bundle import bundled_folder
from ledger.contract.diagnostic import Diagnostic, Path
from ledger.contract.lint import lint
from ledger.contract.model import Contract
from ledger.contract.reader import Places, contract_texts, read_contract
from ledger.contract.replacement import replace_texts, written
from ledger.contract.scalar import parse_contract_id, parse_currency, parse_day, parse_instant, parse_line, parse_timezone
from ledger.errors import LedgerError
from ledger.instant import local_text
from ledger.settlement.calendar import zone

KINDS = ("real-time", "retrieval", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A value in which contracts of one kind differ: where it stands, what reads it, what it is, and whether it is a list."""

    path: Path
    parse: Callable[[str], object]
    help: str
    is_list: bool = False


FIELDS: dict[str, Field] = {
    "id": Field(path=("id",), parse=parse_contract_id, help="Name of the contract in commands and on invoices, such as acme-bank-chat."),
    "title": Field(path=("title",), parse=parse_line, help="Title of the contract."),
    "provider": Field(path=("parties", "provider", "name"), parse=parse_line, help="Name of who sells."),
    "provider-tax-id": Field(path=("parties", "provider", "tax_id"), parse=parse_line, help="Tax id of who sells."),
    "provider-address": Field(
        path=("parties", "provider", "address"), parse=parse_line, help="A line of the seller's address; give each line.", is_list=True
    ),
    "customer": Field(path=("parties", "customer", "name"), parse=parse_line, help="Name of who buys."),
    "customer-tax-id": Field(path=("parties", "customer", "tax_id"), parse=parse_line, help="Tax id of who buys."),
    "customer-address": Field(
        path=("parties", "customer", "address"), parse=parse_line, help="A line of the customer's address; give each line.", is_list=True
    ),
    "account": Field(
        path=("parties", "customer", "accounts"), parse=parse_line, help="An account of the customer; give each.", is_list=True
    ),
    "currency": Field(path=("money", "currency"), parse=parse_currency, help="Currency by its code, such as CNY, EUR or USD."),
    "timezone": Field(path=("calendar", "timezone"), parse=parse_timezone, help="Time zone of its days and months, such as Asia/Shanghai."),
    "from": Field(path=("effective", "from"), parse=parse_day, help="First day, such as 2026-07-01."),
    "until": Field(path=("effective", "until"), parse=parse_day, help="First day no longer in force. Default: a year after the first day."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContract:
    """The file to be written, what it means, and the paths, with their lines, of values that are still the template's; `money` are those
    that decide amounts, which nobody can give here, each as the file writes it."""

    content: bytes
    contract: Contract
    money: tuple[tuple[str, int, str], ...]
    unfilled: tuple[tuple[str, int], ...]


def parse_value(name: str, text: str) -> str:
    """The text, if a contract can hold it as this one of FIELDS; else Refusal."""
    FIELDS[name].parse(text)
    written(text)
    return text


def new_contract(kind: str, language: str, given: Mapping[str, Sequence[str]]) -> NewContract:
    """The template of one of KINDS, in `en` or `zh`, with these texts of FIELDS. LedgerError if they do not go together.

    Every text was read by `parse_value`; only a list has several. Instants of the template's examples move into the span and the zone.
    """
    template = (bundled_folder("contracts") / "templates" / f"{kind}.{language}.yaml").read_bytes()
    texts: dict[Path, str | Sequence[str]] = {
        FIELDS[name].path: values if FIELDS[name].is_list else values[0] for name, values in given.items()
    }
    if "from" in given and "until" not in given:
        texts["effective", "until"] = _year_after(parse_day(given["from"][0])).isoformat()
    content = replace_texts(template, texts)
    result = read_contract(content, "")
    if result.contract is None:
        raise _misfit(result.diagnostics[0], given, result.places)
    moved = dict(_moved_instants(template, result.contract))
    if moved:
        content = replace_texts(content, moved)
        result = read_contract(content, "")
    assert result.contract is not None, [str(one) for one in result.diagnostics]
    return NewContract(
        content=content,
        contract=result.contract,
        money=tuple(_money(result.contract, result.places)),
        unfilled=tuple(dict.fromkeys(_unfilled(result.contract, result.places))),
    )


def _year_after(day: date) -> date:
    return date(day.year + 1, 3, 1) if (day.month, day.day) == (2, 29) else day.replace(year=day.year + 1)


def _misfit(diagnostic: Diagnostic, given: Mapping[str, Sequence[str]], places: Places) -> LedgerError:
    """Of values that are right each by itself, which one does not go with the others; each stands on a line of its own."""
    names = [name for name in given if places.of(FIELDS[name].path)[0] == diagnostic.line]
    option = f"--{names[0]}" if names else "--until, a year after --from"
    message = f"{option}: found {diagnostic.found}; expected {diagnostic.expected}"
    return LedgerError(message, cure=diagnostic.cure, exit_code=2)


def _moved_instants(template: bytes, contract: Contract) -> Iterator[tuple[Path, str]]:
    """The instants of the examples at the same time of day, in the contract's zone and its first whole month.

    In the template they all lie in the month in which it begins, by day and far from every change of clocks.
    """
    texts = contract_texts(template)
    assert isinstance(texts, dict)
    old = texts["effective"]["from"], texts["calendar"]["timezone"]
    start, until, zone_name = contract.effective.start, contract.effective.until, contract.calendar.timezone
    month = start if start.day == 1 else _next_month(start)
    if until is not None and until < _next_month(month):
        message = f"--until: found {until}; expected {_next_month(month)} or later"
        raise LedgerError(message, cure="the examples of the template need a whole month: leave --until out and change both", exit_code=2)
    if old == (start.isoformat(), zone_name):
        return
    for path, text in _texts(texts["examples"], ("examples",)):
        if path[-1] in ("at", "received_at", "start", "end"):
            local = parse_instant(text).astimezone(zone(old[1]))
            moved = datetime.combine(local.date().replace(year=month.year, month=month.month), local.time(), zone(zone_name))
            yield path, local_text(moved)


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _money(contract: Contract, places: Places) -> Iterator[tuple[str, int, str]]:
    """What decides the amounts of an invoice, before what decides when it is paid."""
    paths: list[tuple[Path, tuple[Path, ...]]] = [(("minimum_commitment",), ((),)), (("money", "tax"), (("name",), ("rate",)))]
    for model in contract.models:
        paths.append((("models", model, "per_million_tokens"), (("input",), ("cached_input",), ("output",))))
    paths += [(("refund", "cap"), ((),)), (("payment", "due"), ((),))]
    for path, parts in paths:
        written_there = " ".join(places.text_of((*path, *part)) for part in parts)
        yield ".".join(map(str, path)), places.of(path)[0], written_there


def _unfilled(contract: Contract, places: Places) -> Iterator[tuple[str, int]]:
    """Each value that is still the template's, as `contract check` finds them, in the order of the file."""
    for finding in lint(contract):
        if finding.code == "template_value":
            name = ".".join(part for part in finding.path if isinstance(part, str))
            yield name, places.of(finding.path, at_key=finding.at_key)[0]


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Each text of keys and lists, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    else:
        assert isinstance(value, list)
        for at, inner in enumerate(value):
            yield from _texts(inner, (*path, at))
