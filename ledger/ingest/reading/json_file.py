"""JSON Lines, and whatever else becomes JSON objects in the table `record`: which fields they have, and how one is split into them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from ledger.errors import LedgerError
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.mapping import FileFormat, Mapping
from ledger.ingest.reading.format_choice import choose_mapping
from ledger.ingest.reading.json_text import JSON_MACROS, json_paths
from ledger.ingest.reading.line_file import LineFile, Piece
from ledger.ingest.reading.line_table import count_lines, lines_query
from ledger.ingest.reading.record_file import unread_fields
from ledger.ingest.reading.source_file import SourceFile
from ledger.ingest.reading.text_file import Split, TextFile, item

SAMPLED_RECORDS = 10_000  # in which the fields of a JSON file are looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile(TextFile):
    """A file of JSON objects. If `numbers_are_texts`, all of theirs are in quotes already."""

    numbers_are_texts: bool

    @property
    def keeps_numbers(self) -> bool:
        """As the base class describes it."""
        return self.numbers_are_texts

    def split(self, paths: list[FieldPath], piece: Piece | None) -> Split:
        """By name. What keeps a number as it stands costs time, and is left out where no number of the piece asks for it."""
        text = exp.column("text")
        is_exact = self.numbers_are_texts or (piece is not None and not piece.may_be_inexact)
        exact = exp.column("text") if is_exact else exp.func("exact_json", exp.column("text"))
        cells: dict[FieldPath, exp.Expr]
        if _are_columns(paths):
            structure = json.dumps({name: "VARCHAR" for (name,) in paths})
            found = exp.func("json_columns", text, exact, exp.Literal.string(structure))
            cells = {path: exp.func("struct_extract", exp.column("split"), exp.Literal.string(path[0])) for path in paths}
        else:
            found = exp.func("json_items", text, exact, json_paths(paths))
            cells = {path: item(index) for index, path in enumerate(paths, start=1)}
        return Split(found=found, cells=cells, malformed=exp.func("json_fault", exp.column("split")))


def open_json(
    source: SourceFile, mappings: tuple[Mapping, ...], file_format: FileFormat, lines: LineFile | None, *, numbers_are_texts: bool = False
) -> JsonFile:
    """The file whose lines are objects, or whose objects are in the table `record`."""
    connection = source.connection
    for macro in JSON_MACROS:
        connection.execute(macro)
    if lines is not None:  # as the table would be that is not made
        connection.execute("CREATE TEMP VIEW record AS " + lines_query(lines.whole(), lines))
        sample = lines.cut(0, min(SAMPLED_RECORDS, lines.lines), source.folder / "sample")
        connection.execute("CREATE TEMP VIEW sampled AS " + lines_query(sample, lines))
    else:
        connection.execute("CREATE TEMP VIEW sampled AS SELECT rowid, text FROM record")
    rows = connection.execute(
        "SELECT key FROM (SELECT unnest(json_keys(text)) AS key, rowid AS r FROM sampled "  # noqa: S608
        f"WHERE rowid < {SAMPLED_RECORDS:d} AND json_valid(text) AND ltrim(text)[1] = '{{') GROUP BY key ORDER BY min(r), key"
    ).fetchall()
    found = tuple(row[0] for row in rows)
    if not found and count_lines(source, lines) == 0:
        raise LedgerError(f"{source.path}: there is no record in it", cure="leave it out, or export it again if it should have some")
    mapping = choose_mapping(source.path, mappings, file_format, {None: (*found, *_inner_fields(source, mappings, found))}).mapping
    # Any field may stand in a later record: a field too many does no harm.
    fields = (*found, *sorted({path[0] for path in mapping.paths} - set(found)))
    return JsonFile(
        name=source.path.name, sha256="", mapping=mapping, fields=fields, ignored=unread_fields(mapping, fields),
        records=count_lines(source, lines), folder=source.folder, connection=connection, first_row=0, lines=lines,
        numbers_are_texts=numbers_are_texts,
    )  # fmt: skip


def _inner_fields(source: SourceFile, mappings: tuple[Mapping, ...], fields: tuple[str, ...]) -> list[str]:
    """The fields inside others by which a mapping identifies a file, as `a.b`, and that the file has: in the sampled records if any of
    them is there, else behind them."""
    wanted = {name: name.partition(".") for mapping in mappings for name in mapping.identify if name not in fields}
    inner = sorted((name, outer, key) for name, (outer, _, key) in wanted.items() if key and outer in fields)
    if not inner:
        return []
    for relation, where in (("sampled", f"rowid < {SAMPLED_RECORDS:d}"), ("record", f"rowid >= {SAMPLED_RECORDS:d}")):
        conditions = [
            exp.and_(
                exp.func("contains", exp.column("text"), exp.Literal.string(f'"{key}"')),
                exp.func("json_exists", exp.column("text"), exp.Literal.string(f'$."{outer}"."{key}"')),
            )
            for _, outer, key in inner
        ]
        query = exp.select(*(exp.func("bool_or", condition) for condition in conditions)).from_(relation).where(where)
        row = source.connection.execute(query.where("json_valid(text)").sql("duckdb")).fetchone()
        assert row is not None
        if any(row):
            return [name for (name, _, _), there in zip(inner, row, strict=True) if there]
    return []


def _are_columns(paths: Sequence[FieldPath]) -> bool:
    """Whether the fields can be the columns of a struct, which does not tell large letters from small ones: it takes one pass over a
    record and a third of the time."""
    return bool(paths) and all(len(path) == 1 and path[0] for path in paths) and len({path[0].casefold() for path in paths}) == len(paths)
