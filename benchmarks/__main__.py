"""All benchmarks in one run, on the same server and the same rows.

usage: python benchmarks [ROWS ...] [--json FILE]
"""

import budget
import ingest
import recompute
import settle
from bench import main

if __name__ == "__main__":
    main(ingest.SUBJECT, settle.SUBJECT, recompute.SUBJECT, budget.SUBJECT)
