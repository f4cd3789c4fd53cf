"""What is kept of a row that is refused: the fields of its record that the mapping reads, as JSON, or the line that is no record.

Takes the relation `chunk_record` and gives `chunk_fields`, by the number of the record. Source: specification, section 2.
"""

import json

from sqlglot import exp

from ledger.ingest.expression import RECORD_COLUMN, field_column, field_key
from ledger.ingest.reading.record_file import NULL_TEXT, RecordFile

LONGEST_FIELD = 1_000  # characters of a field that are kept with a refused row


def fields_select(records: RecordFile) -> exp.Select:
    """The fields of each record that the mapping reads and that it has, as JSON; of a line that is none the line (`raw`), to be hashed."""
    values: dict[str, exp.Expr] = {}
    for path in records.read_paths:
        shown = exp.func("left", exp.column(field_column(path), quoted=True), exp.Literal.number(LONGEST_FIELD))
        values[field_key(path)] = exp.func("replace", shown, exp.func("chr", exp.Literal.number(0)), exp.Literal.string("�"))
    values |= {key: exp.Literal.string(text) for key, text in records.mapping.given.kept().items()}
    if records.mapping.counts_records:
        values[RECORD_COLUMN] = exp.cast(exp.column(RECORD_COLUMN, quoted=True), "TEXT")
    # Without what is null: the same row in a file whose other rows have more fields is the same row. Put together as text, since DuckDB's
    # functions that make an object of many fields need many times the memory.
    parts: list[exp.Expr] = [
        exp.DPipe(this=exp.Literal.string(json.dumps(name, ensure_ascii=False) + ":"), expression=_json_text(value), safe=True)
        for name, value in values.items()
    ]
    listed = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(","), *(parts or [exp.Literal.string("")])])
    present = exp.Anonymous(this="concat", expressions=[exp.Literal.string("{"), listed, exp.Literal.string("}")])
    is_record = exp.column("#malformed", quoted=True).is_(exp.null())
    fields = exp.case().when(is_record, present).else_(exp.Literal.string("{}"))
    raw = exp.case().when(is_record.copy(), NULL_TEXT.copy()).else_(exp.column("#raw", quoted=True))
    # The limit keeps what is asked for above the fields: below them, DuckDB would copy what each record was split into for every one.
    return (
        exp.select(exp.alias_(exp.column(RECORD_COLUMN, quoted=True), "record"), exp.alias_(fields, "fields"), exp.alias_(raw, "raw"))
        .from_("chunk_record")
        .limit(2**62)
    )


def _json_text(value: exp.Expr) -> exp.Expr:
    return exp.cast(exp.func("to_json", value), "TEXT")
