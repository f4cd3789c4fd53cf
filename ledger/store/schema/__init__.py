"""The tables of ledger, described once. Migrations create them, queries are built from them.

Text that can reach a document is ordered by code point (`COLLATE "C"`). Instants are timestamptz in UTC. Durations are integer
microseconds, tokens integers. Triggers and exclusion constraints, which metadata cannot say, are in the migrations.
Source: specification, sections 2, 3 and 8.
"""

from ledger.store.schema.cells import cell, cold_start_event, delayed_cell, stale, traffic
from ledger.store.schema.closings import closing, credit_note, invoice_line, issued_document, issued_file, journal_posting, numbering
from ledger.store.schema.common import metadata
from ledger.store.schema.contracts import account_covered, approval, contract_reading, contract_version, version_in_force
from ledger.store.schema.settlements import ledger, run, settlement
from ledger.store.schema.telemetry import (
    batch,
    engine_request,
    event,
    formed_request,
    interval,
    observation,
    quarantine,
    resubmission,
    void,
)

__all__ = [
    "account_covered",
    "approval",
    "batch",
    "cell",
    "closing",
    "cold_start_event",
    "contract_reading",
    "contract_version",
    "credit_note",
    "delayed_cell",
    "engine_request",
    "event",
    "formed_request",
    "interval",
    "invoice_line",
    "issued_document",
    "issued_file",
    "journal_posting",
    "ledger",
    "metadata",
    "numbering",
    "observation",
    "quarantine",
    "resubmission",
    "run",
    "settlement",
    "stale",
    "traffic",
    "version_in_force",
    "void",
]
