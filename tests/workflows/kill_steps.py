"""The named steps of loading, of settling and of closing at which a process or its server is killed, and how often."""

import os

KILLS_PER_STEP = int(os.environ.get("LEDGER_KILLS_PER_STEP", "2"))  # of loading and settling

INGEST_STEPS = [
    *("ingest.before_copy", "ingest.after_copy", "ingest.after_batch", "ingest.before_cells", "ingest.after_cells"),
    *("ingest.before_commit", "ingest.after_commit"),
]
RECOMPUTE_STEPS = ["recompute.before_remove", "recompute.before_commit"]
SETTLE_STEPS = ["settle.after_contract", "settle.before_commit", "settle.after_commit", "settle.before_file"]
CLOSE_STEPS = [
    *("close.after_compare", "close.after_number", "close.after_keep", "close.before_commit", "close.after_commit"),
    "settle.before_file",
]
