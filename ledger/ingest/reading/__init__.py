"""Reads a file of records: CSV, JSON Lines, a JSON array or Parquet, plain or compressed, every value as the text that stands there.

    a file
      │  opening            a link to it and an empty DuckDB database (scratch), with more memory for long lines
      │  compression        the content, proved to be whole; what stands otherwise is unfolded (ledger/ingest/unfolding)
      │  recognition        which format it is
      ├── csv_file
      ├── json_file         with json_array for objects that are not one to a line
      └── parquet_file
      │  format_choice      which mapping its fields fit
      ▼
    RecordFile              its fields, how many records, and any span of them as a DuckDB relation

A text is cut into spans where its lines allow it (`line_file`); else its lines are put into a table first (`line_table`). Rows stay inside
DuckDB. Source: specification, section 2.
"""
