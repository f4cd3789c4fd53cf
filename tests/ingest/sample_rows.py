"""Rows to load, and what their summary says."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
MAPPINGS, FORMATS = GOLDEN / "mappings", GOLDEN / "formats"
HEADER = "account,request_id,model,received_at,inference_us,input_tokens,output_tokens"


def row(account: str = "acme", request_id: str = "r", tokens: int = 10) -> str:
    """A good row under HEADER."""
    return f"{account},{request_id},m,2026-05-06T10:00:00Z,90000,{tokens},5"


def write_rows(path: Path, rows: list[str], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def totals(output: str) -> dict[str, Any]:
    """The totals of `ledger ingest --format json`, without the instants."""
    total: dict[str, Any] = json.loads(output)["total"]
    return {name: value for name, value in total.items() if name not in ("earliest", "latest")}


def counts(read: int = 0, new: int = 0, duplicate: int = 0, conflict: int = 0, clamped: int = 0, **reasons: int) -> dict[str, Any]:
    refused = sum(reasons.values())
    return {
        "read": read, "new": new, "duplicate": duplicate, "conflict": conflict, "refused": refused, "reasons": reasons, "skipped": {},
        "merged": 0, "joined": 0, "clamped": clamped,
    }  # fmt: skip
