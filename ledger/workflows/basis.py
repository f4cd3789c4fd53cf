"""What a document was computed from besides what its run saw: the days of its months, since time zone data may say otherwise later, and the
credit notes that it carried in. Recorded when it is issued.

Takes periods and credit notes, gives plain dicts and lists, and from them the same periods.
Source: specification, section 8, "Reproducible".
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ledger.instant import instant_text
from ledger.settlement.calendar import Days
from ledger.settlement.period import Period
from ledger.store.credit_notes import CreditNoteRow


def basis_of(periods: Iterable[Period], credit_notes: Iterable[CreditNoteRow] = ()) -> dict[str, Any]:
    """The month of a document and those closed before it, by name: start, end, and of each piece the starts of its days and the end of
    the last; and the credit notes in its balance that no document had carried in before."""
    return {
        "months": {
            period.name: {
                "start": instant_text(period.start),
                "end": instant_text(period.end),
                "pieces": [[instant_text(bound) for bound in (*piece.days.starts, piece.days.end)] for piece in period.pieces],
            }
            for period in periods
        },
        "credit_notes": [{"tax_id": note.tax_id, "number": note.number_text} for note in credit_notes],
    }


def as_recorded(period: Period, basis: Mapping[str, Any]) -> Period | None:
    """The period with the days that were recorded of its month; None if none were that could be those of its pieces."""
    recorded = basis.get("months", {}).get(period.name)
    if recorded is None or len(recorded["pieces"]) != len(period.pieces):
        return None
    instant = datetime.fromisoformat  # not as people may write one: a month of 1970 may begin in 1969
    pieces = []
    for piece, bounds in zip(period.pieces, recorded["pieces"], strict=True):
        *starts, end = map(instant, bounds)
        pieces.append(replace(piece, days=Days(starts=tuple(starts), end=end)))
    return replace(period, start=instant(recorded["start"]), end=instant(recorded["end"]), pieces=tuple(pieces))
