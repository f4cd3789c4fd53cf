"""The columns of an event as a mapping finds them in a record: SQL from the relation `chunk_record` to the relation `mapped`.

Every value is the text that stands in the source, or what a source with types says it is; the event rules judge it.
Source: specification, section 2.
"""

from collections.abc import Sequence

from sqlglot import exp

from ledger.ingest.expression import RECORD_COLUMN, Compiled
from ledger.ingest.expression import Path as FieldPath
from ledger.ingest.given import Asked
from ledger.ingest.mapping import DURATION_POWERS, DURATIONS, EPOCH_POWERS, INTEGERS, RFC3339, TEXTS, Mapping, Origin, Source
from ledger.ingest.reading.record_file import value_key

_NULL_TEXT = exp.cast(exp.null(), "TEXT")


def filled_name(asked: Asked) -> str:
    """The column that says whether a record has no account or model but what the command line gives."""
    return f"filled_{asked}"


def mapped_select(mapping: Mapping, fields: Sequence[str], values: dict[FieldPath, str]) -> exp.Select:
    """From `chunk_record` to the relation `mapped` that the event rules judge. `values` are those of the fields that are no texts."""
    usable = _usable(mapping, fields)
    columns: list[exp.Expr] = [exp.alias_(exp.column(f"#{name}", quoted=True), name) for name in ("line", "record", "malformed")]
    if mapping.observations:
        observations = {
            "record_id": mapping.observations.record,
            "trace": mapping.observations.trace,
            "header": mapping.observations.header,
        }
        columns += [exp.alias_(value.sql.copy() if value else _NULL_TEXT.copy(), name) for name, value in observations.items()]
    if mapping.skip:
        kinds = exp.case().when(exp.column("#malformed", quoted=True).is_(exp.null()).not_(), _NULL_TEXT.copy())
        for name, condition in mapping.skip.items():
            kinds = kinds.when(condition.sql.copy(), exp.Literal.string(name))
        columns.append(exp.alias_(kinds, "skipped"))
    columns += [exp.alias_(_first(usable.get(name, [])), name) for name in TEXTS if name != "async_header"]
    for asked in mapping.fills:
        *own, _ = usable[asked]
        lacks = exp.and_(exp.column("#malformed", quoted=True).is_(exp.null()), _first(own).is_(exp.null()))
        columns.append(exp.alias_(lacks, filled_name(asked)))
    columns += _text_or_value("async_header", usable.get("async_header", []), values, "BOOLEAN")
    for name in INTEGERS:
        columns += _text_or_value(name, usable.get(name, []), values, "BIGINT")
    for name in DURATIONS:
        columns += _text_or_value(name, usable.get(name, []), values, "BIGINT", unit="us")
        columns += _measured(name, usable.get(name, []), DURATION_POWERS)
    if mapping.origin is not None:
        columns += [
            exp.alias_(_since(mapping.origin, fields), "received_at_text"),
            exp.alias_(_null("BIGINT"), "received_at_value"),
            exp.alias_(exp.Literal.number(0), "received_at_power"),
            exp.alias_(exp.false(), "received_at_twice"),
        ]
    else:
        columns += _text_or_value("received_at", usable.get("received_at", []), values, "TIMESTAMPTZ", unit=RFC3339)
        columns += _measured("received_at", usable.get("received_at", []), EPOCH_POWERS)
    return _numbers_once(exp.select(*columns))


def given_powers(mapping: Mapping, fields: Sequence[str]) -> dict[str, frozenset[int]]:
    """The powers of ten in which texts of the durations and of `received_at` may be given; none for an instant that is RFC 3339."""
    usable = _usable(mapping, fields)
    units = dict.fromkeys(DURATIONS, DURATION_POWERS) | {"received_at": EPOCH_POWERS}
    found = {name: frozenset(powers[one.unit] for one in usable.get(name, []) if one.unit in powers) for name, powers in units.items()}
    return found | ({} if mapping.origin is None else {"received_at": frozenset([0])})  # what _since counts


def _usable(mapping: Mapping, fields: Sequence[str]) -> dict[str, list[Source]]:
    """The sources of each column that can be in a record with these fields."""
    return {
        column: [s for s in sources if not s.value.paths or any(path[0] in fields for path in s.value.paths)]
        for column, sources in mapping.columns.items()
    }


def _numbers_once(select: exp.Select) -> exp.Select:
    """The select from `chunk_record`, in which each number that expressions read is parsed once, below them: DuckDB would otherwise keep
    a vector for every step of every parsing."""
    numbers: dict[str, exp.Expr] = {}

    def named(node: exp.Expr) -> exp.Expr:
        is_parsing = isinstance(node, exp.Anonymous) and node.name == "number_of"
        if not is_parsing or any(isinstance(inner, exp.Anonymous) and inner.name == "number_of" for inner in node.expressions[0].walk()):
            return node
        name = f"#number {node.sql('duckdb')}"
        numbers[name] = node.copy()
        return exp.column(name, quoted=True)

    found = select.transform(named)
    if not numbers:
        return select.from_("chunk_record")
    parsed = [exp.alias_(number, name, quoted=True) for name, number in numbers.items()]
    assert isinstance(found, exp.Select), "what became of a select"
    return found.from_(exp.select("*", *parsed).from_("chunk_record").subquery("parsed"))


def _since(origin: Origin, fields: Sequence[str]) -> exp.Expr:
    """The instant, microseconds since 1970 as text; a text that is no time since the start stays as it is."""
    assert origin.start_us is not None, "the start is given"
    start, stepped = exp.cast(exp.Literal.number(origin.start_us), "BIGINT"), _NULL_TEXT.copy()
    if origin.step_us is not None:
        before = exp.paren(exp.Sub(this=exp.column(RECORD_COLUMN, quoted=True), expression=exp.Literal.number(1)))
        steps = exp.Mul(this=exp.Literal.number(origin.step_us), expression=before)
        stepped = exp.cast(exp.Add(this=start.copy(), expression=steps), "TEXT")
    if origin.after is None or not any(path[0] in fields for path in origin.after.value.paths):
        return stepped
    after = _value(origin.after)
    after_us = exp.func("duration_us", after.copy(), exp.Literal.number(DURATION_POWERS[origin.after.unit]))
    instant = exp.cast(exp.Add(this=start, expression=after_us.copy()), "TEXT")
    return exp.case().when(after.copy().is_(exp.null()), stepped).when(after_us.is_(exp.null()), after).else_(instant)


def _value(source: Source) -> exp.Expr:
    """The source's text; null if it is empty."""
    value = exp.func("nullif", source.value.sql.copy(), exp.Literal.string(""))
    if source.integer_from_decimal:
        return exp.func("regexp_replace", value, exp.Literal.string(r"^(-?[0-9]+)\.0+$"), exp.Literal.string(r"\1"))
    if source.offset:
        return exp.paren(exp.DPipe(this=value, expression=exp.Literal.string(source.offset), safe=True))
    return value


def _null(kind: str) -> exp.Expr:
    return exp.cast(exp.null(), kind)


def _text_or_value(name: str, sources: Sequence[Source], values: dict[FieldPath, str], kind: str, *, unit: str = "") -> list[exp.Expr]:
    """The column as a value, if its only source is a field that is one in the file, of this kind and unit; else as a text."""
    text, value = _first(sources), _null("BOOLEAN" if kind == "BOOLEAN" else "BIGINT")
    match sources:
        case [Source(value=Compiled(sql=exp.Column()) as field, offset="") as source] if source.unit == unit:
            (path,) = field.paths or ((),)
            if values.get(path) == kind:
                text, value = _NULL_TEXT.copy(), exp.column(value_key(path), quoted=True)
    return [exp.alias_(text, f"{name}_text"), exp.alias_(value, f"{name}_value")]


def _first(sources: Sequence[Source]) -> exp.Expr:
    values = [_value(source) for source in sources]
    if not values:
        return _NULL_TEXT.copy()
    return exp.func("coalesce", *values) if len(values) > 1 else values[0]


def _measured(name: str, sources: Sequence[Source], powers: dict[str, int]) -> list[exp.Expr]:
    """The power of ten of a column, the name under which it was found, and whether two sources have a value."""
    choose = {"power": exp.case(), "name": exp.case()}
    given: list[exp.Expr] = []
    for source in sources:
        is_given = _value(source).is_(exp.null()).not_()
        power = powers.get(source.unit)
        choose["power"] = choose["power"].when(is_given.copy(), exp.null() if power is None else exp.Literal.number(power))
        choose["name"] = choose["name"].when(is_given.copy(), exp.Literal.string(source.name))
        given.append(exp.cast(is_given.copy(), "INT"))
    power_value: exp.Expr
    name_value: exp.Expr
    twice: exp.Expr
    match sources:
        case []:
            power_value, name_value, twice = exp.cast(exp.null(), "INT"), exp.Literal.string(name), exp.false()
        case [source]:
            power = powers.get(source.unit)
            power_value = exp.cast(exp.null() if power is None else exp.Literal.number(power), "INT")
            name_value, twice = exp.Literal.string(source.name), exp.false()
        case _:
            power_value, name_value = exp.cast(choose["power"], "INT"), choose["name"]
            total: exp.Expr = given[0]
            for one in given[1:]:
                total = exp.Add(this=total, expression=one)
            twice = exp.GT(this=exp.paren(total), expression=exp.Literal.number(1))
    columns: list[exp.Expr] = [
        exp.alias_(power_value, f"{name}_power"),
        exp.alias_(twice, f"{name}_twice"),
    ]
    return columns if name == "received_at" else [*columns, exp.alias_(name_value, f"{name}_name")]
