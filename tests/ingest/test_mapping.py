"""Mappings are read strictly, and their expressions cannot do more than they should."""

from pathlib import Path

import duckdb
import pytest

from ledger.errors import LedgerError
from ledger.ingest.expression import ExpressionRefused, expression
from ledger.ingest.given import Given
from ledger.ingest.mapping_file import MappingRefused, built_in_mappings, read_mapping
from ledger.ingest.reading.opening import open_records

GOOD = """schema: ledger/mapping/v1
name: one
identify: [id]
columns:
  request_id: id
  model: model
  received_at: {value: at, unit: epoch_s}
"""


@pytest.mark.parametrize(
    "text",
    ["a; drop table event", "pg_sleep(10)", "read_text('/etc/passwd')", "(select 1)", "a / 2", "a::int", "a like 'x'", "", "a * b",
     "current_user", "case a when 1 then 2 end", "getenv('HOME')", "a like any (select 1)", "split_part(a, '/', b)", "a = b",
     "(" * 60 + "a" + ")" * 60,
     "regexp_extract(a, b)", "regexp_extract(a, 'x')", "regexp_extract(a, '(x)(y)')", "regexp_extract(a, '(?<n>x)')",
     "regexp_extract(a, '(')", "regexp_extract(a, '([[:alpha:]])')", "regexp_extract(a, '(x)', 1, 'i')", "row_number(a)",
     "split_part(a, '/')", "split_part(a, '/', 99999999999)", "[" * 900 + "]" * 900, "if(" + "not " * 450 + "a = 1, 1, 2)",
     "- " * 900 + "1", "||".join("a" * 600), "nullif(" * 40 + "a" + ", 'x')" * 40, "coalesce(" * 20 + "a" + ") + 1" * 20,
     "regexp_extract(" * 40 + "a" + ", '(b)')" * 40,
     "\"#record\"", "a.*", 'a."*"', '"a""b"', '"a\0b"', "count(*)", "x -> 'y'", "max(a) over ()", "1e3 * a"],
)  # fmt: skip
def test_anything_outside_the_whitelist_is_refused(text: str) -> None:
    with pytest.raises(ExpressionRefused):
        expression(text).check()


def test_a_sum_of_numbers_alone_is_computed() -> None:
    assert duckdb.execute(f"SELECT {expression('2026-01-01').sql.sql('duckdb')}").fetchone() == ("2024",)


def test_an_expression_names_the_fields_it_reads() -> None:
    compiled = expression("if(a.b = 'x', coalesce(nullif(c, ''), \"d.e\"), lower(f) || split_part(g, '/', 2))")
    assert compiled.paths == {("a", "b"), ("c",), ("d.e",), ("f",), ("g",)}


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("name: one", "name: one\nnmae: two", "mapping-unknown-key", 3),
        ("name: one", "name: one\nname: two", "mapping-duplicate-key", 3),
        ("{value: at, unit: epoch_s}", "at", "mapping-unit", 7),
        ("{value: at, unit: epoch_s}", "{value: at}", "mapping-unit", 7),
        ("unit: epoch_s", "unit: days", "mapping-value", 7),
        ("unit: epoch_s", "unit: rfc3339, offset: Europe/Paris", "mapping-offset", 7),
        ("model: model", "model: version()", "mapping-expression", 6),
        ("model: model", "e2e_us: {value: e, unit: s}", "mapping-missing-key", 5),
        ("model: model", "model: model\n  e2e_us: e", "mapping-unit", 7),
        ("model: model", "model: *x", "mapping-alias", 0),
        ("v1", "v2", "mapping-schema", 1),
        ("{value: at, unit: epoch_s}", "{? {a: b} : c, value: at, unit: epoch_s}", "mapping-value", 7),
        ("name: one", 'name: "a\\0b"', "mapping-value", 2),
        ("name: one", 'name: "\\ud800"', "mapping-value", 2),
        ("name: one", f"name: {'n' * 1000}", "mapping-value", 2),
        ("name: one", f"name: one\nskip: {{{', '.join(f's{n}: id is null' for n in range(101))}}}", "mapping-value", 3),
        ("name: one", f"name: {'[' * 100_000}", "mapping-yaml", 0),
    ],
)
def test_what_is_wrong_is_named_with_its_place(old: str, new: str, code: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(MappingRefused) as refused:
        read_mapping(file)
    assert (code, line) in [(finding.code, finding.line) for finding in refused.value.diagnostics]


def test_the_good_mapping_is_good_and_its_hash_is_of_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(GOOD)
    first = read_mapping(file)
    assert first.paths == (("at",), ("id",), ("model",))
    file.write_text(GOOD + "# a remark\n")
    assert read_mapping(file).sha256 != first.sha256
    assert first.filled(Given(account="a")).sha256 != first.filled(Given(account="b")).sha256


def test_the_built_in_mappings_are_good() -> None:
    assert "canonical" in built_in_mappings()


DOTTED = """schema: ledger/mapping/v1
name: gateway
description: A gateway log whose fields have dots in their names.
reader: {format: jsonl}
identify: [id]
optional: [gen_ai.cached]
columns:
  account: {constant: a}
  request_id: id
  model: model
  received_at: {value: at, unit: rfc3339}
  input_tokens: '"gen_ai.input"'
  cached_input_tokens: CACHED
  output_tokens: '"gen_ai.output"'
"""
LINE = '{"id":"r1","model":"m","at":"2026-05-06T10:00:00Z","gen_ai.input":10,"gen_ai.cached":4,"gen_ai.output":2}\n'


def test_a_field_with_a_dot_in_its_name_is_never_silently_taken_for_a_nested_one(tmp_path: Path) -> None:
    log, mapping = tmp_path / "log.jsonl", tmp_path / "mapping.yaml"
    log.write_text(LINE)
    mapping.write_text(DOTTED.replace("CACHED", '"gen_ai.cached"'))  # YAML takes these quotes for its own
    with pytest.raises(LedgerError) as refused, open_records(log, (read_mapping(mapping),)):
        pass
    assert "a field whose name is gen_ai.cached" in refused.value.message
    assert refused.value.cure == """write it with both quotes in the mapping: '"gen_ai.cached"'"""
    mapping.write_text(DOTTED.replace("CACHED", """'"gen_ai.cached"'"""))
    with open_records(log, (read_mapping(mapping),)) as records:
        assert records.records == 1


HALF = GOOD.replace("  model: model\n", "").replace(
    "columns:", "role: engine\nrecord: span\njoin: {trace: trace, header: request}\ncolumns:"
)


def test_a_half_says_its_record_and_what_it_shares_with_the_other_one(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(HALF + "skip:\n  load: \"name <> 'llm_request'\"\n")
    mapping = read_mapping(file)
    assert mapping.observations is not None and mapping.observations.role == "engine" and "model" not in mapping.columns
    assert {("span",), ("trace",), ("request",), ("name",)} < set(mapping.paths)
    assert list(mapping.skip) == ["load"]


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("role: engine", "role: proxy", "mapping-value", 4),
        ("role: engine\n", "", "mapping-role", 4),
        ("record: span\n", "", "mapping-missing-key", 4),
        ("trace: trace,", "trace: trace, span: x,", "mapping-unknown-key", 6),
        ("role: engine", "role: gateway", "mapping-missing-key", 8),  # a gateway names the model
        ("columns:", "skip: {Load: \"a = 'b'\"}\ncolumns:", "mapping-value", 7),
        ("columns:", "skip: {load: a || 'b'}\ncolumns:", "mapping-expression", 7),
        ("columns:", "refuse: summaries\ncolumns:", "mapping-unknown-key", 4),
    ],
)
def test_a_half_that_cannot_be_used_is_refused_with_its_place(old: str, new: str, code: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(HALF.replace(old, new, 1))
    with pytest.raises(MappingRefused) as refused:
        read_mapping(file)
    assert (code, line) in [(finding.code, finding.line) for finding in refused.value.diagnostics]


def test_a_field_that_is_a_word_of_the_expressions_is_refused_with_the_way_to_write_it(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    for name in ("when", "from", "select"):
        file.write_text(GOOD.replace("model: model", f"model: {name}", 1))
        with pytest.raises(MappingRefused, match=f"a field with such a name as {name} .*: '\"{name}\"'") as refused:
            read_mapping(file)
        assert "oken" not in str(refused.value)
        file.write_text(GOOD.replace("model: model", f"model: '\"{name}\"'", 1))
        assert (name,) in read_mapping(file).paths


@pytest.mark.parametrize("more", ["", "\n  node: other.node"], ids=["fields", "fields-inside-fields"])
@pytest.mark.parametrize("has_inexact_numbers", [False, True])
def test_a_field_of_a_json_record_is_the_text_that_stands_there(more: str, has_inexact_numbers: bool, tmp_path: Path) -> None:
    expected = {
        r'"a\u0041\n\"b"': 'aA\n"b', "null": None, '""': "", "true": "true", "1.25": "1.25", "[1, 2]": "[1,2]", '{"x": "y"}': '{"x":"y"}',
        '"x", "model": "y"': "x",  # the first one counts
    }  # fmt: skip
    broken = ['{"id": "r"', "[1]"]
    if has_inexact_numbers:
        broken += [f'{{"id": 1e21, "model": {number}}}' for number in ("01", "-01.5", "1.2.3", "1.", "1e", "1e+", "--1")]
        exact = (
            "12345678901234567890123",
            "0.1000000000000000000001",
            "1714500000.1234567890",
            "-1.2345678901234567e-7",
            "5.7e-05",
            "1E21",
        )
        expected |= {number: number for number in exact}
    (tmp_path / "one.yaml").write_text(GOOD + more.lstrip("\n") + ("\noptional: [other]" if more else "") + "\n")
    lines = [f'{{"id": "r", "at": 1, "other": {{"node": "n"}}, "model": {value}}}' for value in expected]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, *broken]))
    with open_records(tmp_path / "rows.jsonl", (read_mapping(tmp_path / "one.yaml"),)) as records:
        records.read_span(records.connection, 0, records.records, records.cut(0, records.records, tmp_path))
        rows = records.connection.execute('SELECT model, "#malformed" IS NULL FROM chunk_record ORDER BY "#record"').fetchall()
    assert rows == [*((text, True) for text in expected.values()), *[(None, False)] * len(broken)]
