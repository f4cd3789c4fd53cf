"""The lines of a statement as people read them: by contract version and model, and in each by the rule that prices them.

Takes the statement's lines in their order and keeps it; sums are sums of rounded lines, so that what is shown adds up.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from ledger.settlement.statement import InvoiceLine, LineKind, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class BandGroup:
    """The lines of one rule, at most one per kind of token."""

    multiplier: Decimal
    lines: tuple[InvoiceLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """The lines of one model under one contract version."""

    version: int
    model: str
    bands: tuple[BandGroup, ...]

    @property
    def amount_minor(self) -> int:
        """The sum of the group's lines."""
        return sum(line.amount_minor for band in self.bands for line in band.lines)


def group_lines(statement: Statement, kind: LineKind) -> tuple[ModelGroup, ...]:
    """The lines of a kind (usage or credit), grouped. Empty without lines of that kind."""
    lines = [line for line in statement.lines if line.kind is kind]
    by_model = groupby(lines, lambda line: (line.version, line.model))
    return tuple(_model_group(version, model, members) for (version, model), members in by_model)


def _model_group(version: int | None, model: str | None, lines: Iterable[InvoiceLine]) -> ModelGroup:
    assert version is not None and model is not None, "usage and credit lines name their version and model"
    # The statement's order puts the token before the multiplier, so two multipliers of one band alternate: gather, do not just group.
    bands: dict[tuple[object, ...], list[InvoiceLine]] = {}
    for line in lines:
        bands.setdefault((line.variant, line.queue, line.forfeited, line.band, line.multiplier), []).append(line)
    return ModelGroup(version=version, model=model, bands=tuple(_band_group(members) for members in bands.values()))


def _band_group(lines: list[InvoiceLine]) -> BandGroup:
    multiplier = lines[0].multiplier
    assert multiplier is not None, "usage and credit lines have a multiplier"
    return BandGroup(multiplier=multiplier, lines=tuple(lines))
