"""A good row of each table whose rows never change, as it is inserted."""

from datetime import UTC, datetime

from ledger.store.schema import batch, contract_version, event, interval, void

AT = datetime(2026, 5, 3, 2, tzinfo=UTC)
EVENT = {
    "account": "acme-bank",
    "request_id": "r1",
    "revision": 1,
    "received_at": AT,
    "input_tokens": 10,
    "cached_input_tokens": 0,
    "output_tokens": 5,
    "batch_id": 1,
    "status": 200,
    "async_header": False,
    "clock_clamped": False,
    "model": "deepseek-v4",
    "queue": "standard",
}
BATCH = {
    "source": "may.csv",
    "content_sha256": "0" * 64,
    "mapping": "ledger",
    "mapping_sha256": "0" * 64,
    "chunk": 0,
    "chunk_rows": 10,
    "rows_read": 1,
    "rows_new": 1,
    "rows_duplicate": 0,
    "rows_conflict": 0,
    "rows_refused": 0,
    "rows_clamped": 0,
    "loaded_at": AT,
    "author": "test",
}
INTERVAL = {"interval_id": "i1", "kind": "circuit_breaker", "starts_at": AT, "ends_at": AT, "added_at": AT, "author": "test"}
VOID = {"account": "a", "request_id": "r", "revision": 1, "kind": "void", "reason": "test", "author": "test", "voided_at": AT}
ROWS = {
    event: EVENT,
    batch: BATCH,
    interval: INTERVAL,
    void: VOID,
    contract_version: {"contract_id": "c", "version": 1, "content_sha256": "0", "content": b"", "file": "", "added_at": AT, "author": ""},
}
