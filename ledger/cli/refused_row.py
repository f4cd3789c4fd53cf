"""A refused row for people and for programs, the same in every command that shows one."""

from ledger.instant import instant_text
from ledger.store.quarantine import RefusedRow

_OUTCOMES = {"duplicate": "is stored already", "resolved": "was resolved before"}  # the others are words


def row_json(row: RefusedRow) -> dict[str, object]:
    """All that is kept of the row; the names are those of `ledger quarantine list`."""
    return {
        "id": row.quarantine_id,
        "file": row.source,
        "line": row.line,
        "reason": row.reason,
        "detail": row.detail,
        "account": row.account,
        "received_at": instant_text(row.received_at) if row.received_at else None,
        "request_id": row.request_id,
        "fields": row.fields,
        "resolution": row.resolution,
        "resolution_reason": row.resolution_reason,
        "resolved_by": row.resolved_by,
        "resolved_at": instant_text(row.resolved_at) if row.resolved_at else None,
    }


def rows_words(count: int) -> str:
    """So many rows."""
    return "1 row" if count == 1 else f"{count:,} rows"


def outcome_words(outcome: str, detail: str) -> str:
    """What became of a row that was sent in again; `detail` is empty if nothing else is to be said."""
    return f"{outcome}: {detail}" if detail else _OUTCOMES.get(outcome, outcome)
