"""A credit on demand of one line of an issued document, by amount or by tokens: what is credited of its net and its tax.

Takes the document, the credits it has had and what is asked for; gives the credit, or refuses it. What many credits come to does not
depend on how they are split or ordered: tokens and tax are rounded on all that has been credited, and a credit is what is new of it.
Source: specification, section 8; decision record credits-on-demand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ledger.contract.model import Rounding
from ledger.errors import LedgerError
from ledger.settlement.charges import exact_amount
from ledger.settlement.money import from_minor, to_minor
from ledger.settlement.statement import InvoiceLine, TaxTerms
from ledger.settlement.tax import tax_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditedDocument:
    """An issued document: its lines in their order, how its own lines are taxed, and the adjustments of its period that later documents
    carry. A credit never makes it less than nothing with these."""

    lines: tuple[InvoiceLine, ...]
    terms: TaxTerms
    adjusted_later: tuple[InvoiceLine, ...]
    minor_digits: int
    rounding: Rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCredit:
    """A credit of the document's line at `position`, from 1: net and tax, integer minor units and not below 0. `tokens` None: by amount."""

    position: int
    tokens: int | None
    net_minor: int
    tax_minor: int


class CreditRefused(LedgerError):
    """A credit is more than its line or its document allows, or of what cannot be credited."""


def credit_by_amount(document: CreditedDocument, before: Sequence[LineCredit], position: int, amount_minor: int) -> LineCredit:
    """The credit of an amount, net of tax; `before` are all credits of the document so far. Raises CreditRefused."""
    _creditable_line(document, position)
    if amount_minor <= 0:
        raise CreditRefused(f"a credit of {_text(document, amount_minor)} is none", cure="credit an amount above 0")
    return _credit(document, before, position, None, amount_minor)


def credit_by_tokens(document: CreditedDocument, before: Sequence[LineCredit], position: int, tokens: int) -> LineCredit:
    """The credit of tokens of a line, at the price of the line: of an adjustment, at its amount by its tokens. `before` are all credits of
    the document so far. It may come to 0, and counts for those after it. Raises CreditRefused."""
    line = _creditable_line(document, position)
    if line.quantity is None or line.quantity <= 0:
        raise CreditRefused(f"line {position} has no tokens to credit", cure="credit it by amount")
    if tokens <= 0:
        raise CreditRefused(f"a credit of {tokens:,} tokens is none", cure="credit 1 token or more")
    by_tokens = [(credit.tokens, credit.net_minor) for credit in before if credit.position == position and credit.tokens is not None]
    tokens_before = sum(credited for credited, _ in by_tokens)
    left = line.quantity - tokens_before
    if tokens > left:
        raise CreditRefused(
            f"line {position} has {line.quantity:,} tokens, of which {tokens_before:,} are credited; {tokens:,} more are too many",
            cure=f"credit at most {left:,} tokens" if left else "all its tokens are credited",
        )
    net_minor = _amount_of(document, line, tokens_before + tokens) - sum(net for _, net in by_tokens)
    return _credit(document, before, position, tokens, net_minor)


def _creditable_line(document: CreditedDocument, position: int) -> InvoiceLine:
    if not 1 <= position <= len(document.lines):
        lines = f"lines 1 to {len(document.lines)}" if document.lines else "no lines"
        raise CreditRefused(f"there is no line {position}: the document has {lines}", cure="name a line of the document")
    line = document.lines[position - 1]
    if line.amount_minor <= 0:
        raise CreditRefused(
            f"line {position} comes to {_text(document, line.amount_minor)}: nothing was charged by it",
            cure="name a line with an amount above 0",
        )
    return line


def _amount_of(document: CreditedDocument, line: InvoiceLine, tokens: int) -> int:
    """What that many tokens of the line come to; all of them come to the line. An adjustment is a difference of rounded lines, and so no
    product of its figures: its tokens have equal parts of it."""
    assert line.quantity is not None and line.rate is not None and line.multiplier is not None, "tokens have a price"
    if line.of is None:
        exact = exact_amount(tokens, line.rate, line.multiplier)
    else:
        exact = Fraction(line.amount_minor * tokens, line.quantity * 10**document.minor_digits)
    return to_minor(exact, document.minor_digits, document.rounding)


def _credit(document: CreditedDocument, before: Sequence[LineCredit], position: int, tokens: int | None, net_minor: int) -> LineCredit:
    """The credit with its tax, unless it is more than what is left of the line, or of the document without or with tax."""
    credited = [*((credit.position, credit.net_minor) for credit in before), (position, net_minor)]
    tax_before_minor = sum(credit.tax_minor for credit in before)
    parts = [replace(document.lines[at - 1], amount_minor=part_minor) for at, part_minor in credited]
    tax_minor = _tax(document, parts) - tax_before_minor

    _refuse_more(document, f"line {position}", document.lines[position - 1].amount_minor, [net for at, net in credited if at == position])
    remaining = (*document.lines, *document.adjusted_later)
    net_limit_minor = sum(line.amount_minor for line in remaining)
    nets = [net for _, net in credited]
    words = "the document, net of its later adjustments,"
    _refuse_more(document, words, net_limit_minor, nets)
    gross_before_minor = sum(nets[:-1]) + tax_before_minor
    _refuse_more(document, f"{words} with tax", net_limit_minor + _tax(document, remaining), [gross_before_minor, net_minor + tax_minor])
    return LineCredit(position=position, tokens=tokens, net_minor=net_minor, tax_minor=tax_minor)


def _tax(document: CreditedDocument, lines: Sequence[InvoiceLine]) -> int:
    """The tax on lines as if they were one document. An adjustment of this document's period is taxed with its own lines if taxed alike."""
    return tax_of(lines, document.terms, document.minor_digits, document.rounding)


def _refuse_more(document: CreditedDocument, what: str, limit_minor: int, credited_minor: Sequence[int]) -> None:
    """Refuses the last of the credits if all of them are more than the limit."""
    asked_minor, before_minor = credited_minor[-1], sum(credited_minor[:-1])
    left_minor = limit_minor - before_minor
    if asked_minor > left_minor:
        amounts = [_text(document, minor) for minor in (limit_minor, before_minor, asked_minor)]
        raise CreditRefused(
            f"{what} comes to {amounts[0]}, of which {amounts[1]} is credited; {amounts[2]} more is too much",
            cure=f"credit at most {_text(document, left_minor)}" if left_minor > 0 else "nothing of it is left to credit",
        )


def _text(document: CreditedDocument, amount_minor: int) -> str:
    return f"{from_minor(amount_minor, document.minor_digits):f}"
