"""What an event says of itself as SQL: its measurements and those that follow from them, and whether it says what it is billed by.

Source: specification, section 2, "Derived".
"""

from sqlglot import exp

from ledger.rating import sql
from ledger.rating.outcome import is_cancelled


def measured(name: str) -> exp.Expr:
    """A measured quantity of an event: a column, or what specification section 2 derives from columns; null when a part is missing."""
    match name:
        case "queue":
            return sql.column("queue_us")
        case "prefill" | "decode":
            return sql.column(f"{name}_us")
        case "inference":
            return sql.known_or(sql.column("inference_us"), exp.Add(this=sql.column("prefill_us"), expression=sql.column("decode_us")))
        case "e2e":
            return sql.known_or(sql.column("e2e_us"), exp.Add(this=sql.column("queue_us"), expression=measured("inference")))
        case "ttft":
            return sql.known_or(sql.column("ttft_us"), exp.Add(this=sql.column("queue_us"), expression=sql.column("prefill_us")))
        case _:
            return sql.column(name)


def is_without_usage() -> exp.Expr:
    """Whether a cancelled request came without the usage that it would be billed by."""
    return sql.both(is_cancelled(), sql.either(sql.is_null(sql.column("input_tokens")), sql.is_null(sql.column("output_tokens"))))
