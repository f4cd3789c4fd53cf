"""Halves of requests as a gateway and an engine write them, and what stands after they are loaded."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.ingest.sample_rows import MAPPINGS

Row = dict[str, Any]
CURRENT = """
SELECT account, request_id, to_char(received_at, 'MI:SS.MS') AS at, queue_us, inference_us, ttft_us, e2e_us, input_tokens, output_tokens,
    status FROM event WHERE NOT EXISTS (
        SELECT FROM void v WHERE (v.account, v.request_id, v.revision) = (event.account, event.request_id, event.revision))
ORDER BY account, request_id
"""
FIELDS = ("at", "queue_us", "inference_us", "ttft_us", "e2e_us", "input_tokens", "output_tokens", "status")


def at(seconds: float) -> str:
    """An instant so long after ten o'clock."""
    return f"2026-05-06T10:{int(seconds) // 60:02d}:{seconds % 60:06.3f}Z"


def gateway(id_: str, seconds: float = 0, *, ms: int = 500, code: int = 200, customer: str = "acme", **more: Any) -> Row:
    """A gateway's row; its header is its id unless another is given."""
    return {"id": id_, "customer": customer, "at": at(seconds), "ms": ms, "code": code, "header": id_} | more


def engine(span: str, header: str, seconds: float = 0.01, *, wait_ms: int = 10, run_ms: int = 400, **more: Any) -> Row:
    """An engine's span."""
    return {"span": span, "header": header, "at": at(seconds), "wait_ms": wait_ms, "run_ms": run_ms, "in": 100, "out": 20} | more


def written(path: Path, rows: Sequence[Row]) -> Path:
    """The rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Halves:
    """Loads halves into the database of a test."""

    def __init__(self, folder: Path, run_ledger: Callable[..., Any], query: Callable[[str], list[Row]]) -> None:
        self.folder, self.run_ledger, self.query = folder, run_ledger, query
        self.number = 0
        self.report: Row = {}  # of the last load

    def load(self, *rows: Row) -> Row:
        """The totals of a load of these rows, all of one role."""
        self.number += 1
        role = "engine" if "span" in rows[0] else "gateway"
        file = written(self.folder / f"{role}-{self.number}.jsonl", rows)
        result = self.run_ledger("ingest", "--mapping", MAPPINGS / f"{role}-half.yaml", file, "--format", "json")
        assert result.exit_code == 0, result.output
        self.report = json.loads(result.stdout)
        totals: Row = self.report["total"]
        return totals

    def current(self) -> dict[str, tuple[Any, ...]]:
        """What stands, by request: minute, second and millisecond of its receipt, then the other FIELDS."""
        return {row["request_id"]: tuple(row[name] for name in FIELDS) for row in self.query(CURRENT)}

    def unjoined(self) -> list[str]:
        """Requests of engines that wait."""
        return [row["request_id"] for row in self.query("SELECT request_id FROM engine_request WHERE NOT merged ORDER BY request_id")]
