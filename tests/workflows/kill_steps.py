"""The named steps of loading and of settling at which a process or its server is killed."""

INGEST_STEPS = [
    *("ingest.before_copy", "ingest.after_copy", "ingest.after_batch", "ingest.before_cells", "ingest.after_cells"),
    *("ingest.before_commit", "ingest.after_commit"),
]
SETTLE_STEPS = ["settle.after_contract", "settle.before_commit", "settle.after_commit", "settle.before_file"]
