"""A chart of accounts: what a company calls the symbolic accounts of the journal.

Takes a YAML file (`schema: ledger/chart/v1`), or the one that ledger brings, and gives names. Strict: a file that leaves an account out,
also one that no document has posted to so far, is refused, so that no later month can fail for it. Source: decision record journal.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ledger.contract.diagnostic import Diagnostic, Severity
from ledger.contract.source import MAX_BYTES, Keys, Node, Refused, Text, read_source, shown
from ledger.errors import FileRefused, LedgerError
from ledger.settlement.journal import ADJUSTMENTS, BALANCE, CREDIT_NOTES, RECEIVABLE, REVENUE, SLA_CREDITS, TAX, TRUE_UP

SCHEMA = "ledger/chart/v1"
DEFAULT = Path(__file__).parent / "chart_of_accounts.yaml"
_OF_LINES = (f"{REVENUE}*", TRUE_UP, SLA_CREDITS)
# Every account that a document can post to.
ACCOUNTS = (RECEIVABLE, BALANCE, TAX, *_OF_LINES, *(f"{of}{account}" for of in (ADJUSTMENTS, CREDIT_NOTES) for account in _OF_LINES))
_PLACE = re.compile(r"\*|\{contract\}|\{customer\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAccount:
    """One line of a chart: a symbolic account, or the beginning of some before a `*`, and what it is called. `line` counts from 1."""

    symbol: str
    name: str
    line: int
    column: int

    def covers(self, account: str) -> bool:
        """Whether it is about the account; `revenue:*`, as an account, stands for all that begin so."""
        return account.startswith(self.symbol[:-1]) if self.symbol.endswith("*") else account == self.symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """All lines of a chart, and the file that they stand in."""

    file: str
    accounts: tuple[ChartAccount, ...]


class ChartRefused(FileRefused):
    """A chart of accounts cannot be used; `diagnostics` says where and why."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


@cache
def default_chart() -> Chart:
    """The chart that ledger brings; read once."""
    return read_chart(DEFAULT)


def read_chart(path: Path) -> Chart:
    """The chart in the file. Raises ChartRefused with every finding, LedgerError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}", cure="name a chart of accounts that can be read") from error
    root, diagnostics = read_source(content, str(path), "chart of accounts")
    reader = _Reader(file=str(path), findings=list(diagnostics))
    accounts = reader.accounts(root) if root is not None else ()
    if reader.findings:
        raise ChartRefused(reader.findings)
    return Chart(file=str(path), accounts=accounts)


def chart_account(chart: Chart, account: str) -> ChartAccount:
    """The line of the chart that names a symbolic account: its own, or the one that begins most like it."""
    covering = [line for line in chart.accounts if line.covers(account)]
    assert covering, "a chart names every account"
    return max(covering, key=lambda line: (not line.symbol.endswith("*"), len(line.symbol)))


def account_name(line: ChartAccount, account: str, *, contract: str, customer: str) -> str:
    """What the chart calls a symbolic account on a document of this contract and customer."""
    known = {"*": account[len(line.symbol) - 1 :], "{contract}": contract, "{customer}": customer}
    return _PLACE.sub(lambda match: known[match[0]], line.name)


def refusal(chart: Chart, line: ChartAccount, found: str, expected: str, cure: str) -> ChartRefused:
    """The chart is refused for a name in it, by one who cannot use that name."""
    return ChartRefused((_diagnostic(chart.file, line.line, line.column, "name", found, expected, cure),))


@dataclass(slots=True)
class _Reader:
    """Walks the tree of the file and collects what is wrong with it."""

    file: str
    findings: list[Diagnostic] = field(default_factory=list)

    def accounts(self, root: Node) -> tuple[ChartAccount, ...]:
        keys = self._keys(root, "schema and accounts")
        for key, (text, _) in keys.items():
            if key not in ("schema", "accounts"):
                self._refuse(text, "unknown", shown(text), "schema or accounts", "remove it")
        for key in ("schema", "accounts"):
            if isinstance(root, Keys) and key not in keys:
                self._refuse(root, "missing", f"no {key}", key, f"write {key}: as the chart that ledger brings does")
        if "schema" in keys and not (isinstance(schema := keys["schema"][1], Text) and schema.text == SCHEMA):
            self._refuse(schema, "schema", shown(schema), SCHEMA, f"write schema: {SCHEMA}")
        if "accounts" not in keys:
            return ()
        listed = keys["accounts"][1]
        found = tuple(self._named(self._keys(listed, "accounts and their names").values()))
        missing = [account for account in ACCOUNTS if not any(line.covers(account) for line in found)]
        if missing and not self.findings:
            cure = "; ".join(f"add {account}: NAME" for account in missing)
            self._refuse(listed, "missing", f"no name for {', '.join(missing)}", "a name for every account", cure)
        return found

    def _named(self, pairs: Iterable[tuple[Text, Node]]) -> Iterator[ChartAccount]:
        for key, value in pairs:
            line = ChartAccount(symbol=key.text, name=value.text if isinstance(value, Text) else "", line=value.line, column=value.column)
            if not _is_known(line):
                self._refuse(key, "unknown", shown(key), f"one of {', '.join(ACCOUNTS)}", "correct it; a * stands at the end alone")
            elif not isinstance(value, Text) or not value.text.strip() or "\n" in value.text:
                self._refuse(value, "value", shown(value), "the name of an account", "write it on one line")
            elif "*" in value.text and not key.text.endswith("*"):
                self._refuse(value, "value", shown(value), "a name without *", f"remove the *: nothing varies in {key.text}")
            elif re.search(r"[{}]", _PLACE.sub("", value.text)):
                cure = "remove other braces"
                self._refuse(value, "value", shown(value), "no braces but those of {contract} and {customer}", cure)
            else:
                yield line

    def _keys(self, node: Node, expected: str) -> dict[str, tuple[Text, Node]]:
        if isinstance(node, Keys):
            return node.pairs
        self._refuse(node, "value", shown(node), expected, "write them as the chart that ledger brings does")
        return {}

    def _refuse(self, node: Node, code: str, found: str, expected: str, cure: str) -> None:
        if not isinstance(node, Refused):
            self.findings.append(_diagnostic(self.file, node.line, node.column, code, found, expected, cure))


def _is_known(line: ChartAccount) -> bool:
    """Whether some document can post to it."""
    if "*" in line.symbol[:-1]:
        return False
    return any(
        line.covers(account) or (account.endswith("*") and len(line.symbol) >= len(account) and line.symbol.startswith(account[:-1]))
        for account in ACCOUNTS
    )


def _diagnostic(file: str, line: int, column: int, code: str, found: str, expected: str, cure: str) -> Diagnostic:
    return Diagnostic(
        severity=Severity.ERROR, code=f"chart-{code}", file=file, line=line, column=column, found=found, expected=expected, cure=cure
    )
