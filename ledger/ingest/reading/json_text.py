"""JSON in a text, for DuckDB: the macros that read fields of it without changing a number, and the paths of fields."""

from collections.abc import Sequence

from sqlglot import exp

from ledger.ingest.expression import Path as FieldPath

JSON_MACROS = (
    # DuckDB writes a number of more than 15 digits or with an exponent anew, through a double; as a text it stays what it is. The quote
    # that ends a key is never preceded by these characters, the quote that begins a text always is. What is no number, such as 01 or 1.2.3,
    # keeps its rest behind the quotes: the text is no JSON then as before.
    r"""CREATE MACRO exact_json(text) AS CASE WHEN regexp_matches(text, '[1-9](?:\.?[0-9]){15}|[0-9][eE][-+]?[0-9]')
    THEN regexp_replace(text, '([^\\:,\[{\s]"\s*:\s*)(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)', '\1"\2"', 'g')
    ELSE text END""",
    # The text is looked at, and what is to be read is its exact one: null if it is no JSON. Of two fields with the same key the first one
    # counts.
    """CREATE MACRO json_items(text, exact, paths) AS CASE WHEN ltrim(text)[1] = '{' THEN TRY(json_extract_string(exact, paths)) END""",
    """CREATE MACRO json_columns(text, exact, structure) AS CASE WHEN ltrim(text)[1] = '{'
    THEN TRY(json_transform(exact, structure)) END""",
    "CREATE MACRO json_values(text, paths) AS json_items(text, exact_json(text), paths)",
    "CREATE MACRO json_fault(found) AS CASE WHEN found IS NULL THEN 'the record is not a JSON object' END",
)


def json_paths(paths: Sequence[FieldPath]) -> exp.Expr:
    """The list of the fields' paths as DuckDB's JSON functions write them."""
    return exp.array(*(exp.Literal.string("$" + "".join(f'."{name}"' for name in path)) for path in paths))
