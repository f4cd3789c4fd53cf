"""The rules of the event: mapped texts to exact columns, or the reason why a row is refused. All rows of a chunk at once, in DuckDB.

Takes the relation `mapped`, in which a value is the text that stands in the source (`..._text`), or what a source with types says it is
(`..._value`), and gives the table `judged`: one row per record with its columns or its refusal. Nothing passes through binary floating
point: a decimal becomes microseconds by its digits, half even. An observation is judged by the rules that its
role has to keep. Source: specification, section 2.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from ledger.ingest.mapping import DURATIONS, INTEGERS, TYPED, Role
from ledger.store.limits import CLOCK_NOISE_US, LARGEST_TOKENS, LONGEST_US

LONGEST_TEXT = 200  # characters
FUTURE_US = 60 * 1_000_000

_NAMES = ("account", "request_id", "model", "queue", "cold_start", "node")
OBSERVATION_NAMES = ("record_id", "trace", "header")  # of an observation
_TOKENS = tuple(name for name in INTEGERS if name != "status")


class Reason(StrEnum):
    """Why a row is refused, in order of precedence: a row that breaks several rules has the first of its reasons."""

    BAD_TEXT = "bad_text"  # no record at all (broken JSON, wrong number of cells, not UTF-8); NUL; too long; neither true nor false
    MISSING_FIELD = "missing_field"
    BAD_INSTANT = "bad_instant"
    BAD_NUMBER = "bad_number"
    NEGATIVE_DURATION = "negative_duration"
    NEGATIVE_TOKENS = "negative_tokens"
    TOO_LARGE = "too_large"
    CACHED_EXCEEDS_INPUT = "cached_exceeds_input"
    USAGE_MISSING = "usage_missing"
    INCONSISTENT_TIMING = "inconsistent_timing"
    FUTURE = "future"
    CONFLICT = "conflict"  # found while storing: the identity exists with other content


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`condition` (DuckDB, over `parsed`) refuses a row; `detail` says in words what was found, for which column."""

    condition: str
    detail: str


def _rules(role: Role | None) -> dict[Reason, tuple[Rule, ...]]:
    """Every rule that one row can break by itself, by its reason. `role` is None if it is a whole request."""
    return {
        Reason.BAD_TEXT: _bad_text(_NAMES if role is None else (*_NAMES, *OBSERVATION_NAMES)),
        Reason.MISSING_FIELD: _missing_field(_NEEDED[role]),
        Reason.BAD_INSTANT: _BAD_INSTANT,
        Reason.BAD_NUMBER: _BAD_NUMBER,
        Reason.NEGATIVE_DURATION: _NEGATIVE_DURATION,
        Reason.NEGATIVE_TOKENS: _NEGATIVE_TOKENS,
        Reason.TOO_LARGE: _TOO_LARGE,
        Reason.CACHED_EXCEEDS_INPUT: _CACHED_EXCEEDS_INPUT,
        Reason.USAGE_MISSING: () if role is Role.ENGINE else _USAGE_MISSING,
        Reason.INCONSISTENT_TIMING: _INCONSISTENT_TIMING,
        Reason.FUTURE: _FUTURE,
    }


_NEEDED: dict[Role | None, tuple[str, ...]] = {
    None: ("account", "request_id", "model"),
    Role.GATEWAY: ("account", "request_id", "record_id", "model"),
    Role.ENGINE: ("request_id", "record_id"),  # account and model are the gateway's
}


def _bad_text(names: tuple[str, ...]) -> tuple[Rule, ...]:
    return (
        Rule(condition="malformed IS NOT NULL", detail="malformed"),
        *(
            Rule(condition=f"contains({name}, chr(0))", detail=f"'{name.removesuffix('_text')} holds a NUL'")
            for name in (*names, "async_header_text")
        ),
        *(
            Rule(
                # Bytes first: they are counted already, and never fewer than the characters.
                condition=f"strlen({name}) > {LONGEST_TEXT} AND length({name}) > {LONGEST_TEXT}",
                detail=f"'{name} has ' || length({name}) || ' characters, at most {LONGEST_TEXT} are allowed'",
            )
            for name in names
        ),
        Rule(
            condition="lower(async_header_text) NOT IN ('true', 'false')",
            detail="'async_header is ' || quoted(async_header_text) || ', expected true or false'",
        ),
    )


def _missing_field(names: tuple[str, ...]) -> tuple[Rule, ...]:
    missing = {name: f"{name} IS NULL" for name in names} | {"received_at": "received_at_text IS NULL AND received_at_value IS NULL"}
    return (Rule(condition=" OR ".join(f"({one})" for one in missing.values()), detail=_are_empty(missing)),)


def _are_empty(missing: dict[str, str]) -> str:
    """All names whose conditions hold: who repairs a row has to know them at once."""
    named = ", ".join(f"CASE WHEN {condition} THEN '{name}' END" for name, condition in missing.items())
    count = " + ".join(f"({condition})::INTEGER" for condition in missing.values())
    return f"concat_ws(' and ', {named}) || CASE WHEN {count} > 1 THEN ' are empty' ELSE ' is empty' END"


_BAD_INSTANT = (
    Rule(condition="received_at_twice", detail="'received_at is given twice'"),
    Rule(
        condition="received_us IS NULL",
        detail="'received_at is ' || shown_instant(received_at_text, received_at_value) || ', expected ' || "
        "CASE WHEN received_at_power IS NULL THEN 'an instant with its offset, such as 2026-05-06T10:00:00+08:00' "
        "ELSE 'a number that names an instant of the years 1 to 9999' END",
    ),
)
_BAD_NUMBER = (
    *(Rule(condition=f"{name}_twice", detail=f"'{name.removesuffix('_us')} is given in two units'") for name in DURATIONS),
    *(
        Rule(
            condition=f"{name}_text IS NOT NULL AND {name} IS NULL",
            detail=f"{name}_name || ' is ' || quoted({name}_text) || ', expected ' || "
            f"CASE {name}_power WHEN 0 THEN 'a whole number' ELSE 'a decimal number such as 99.5' END",
        )
        for name in DURATIONS
    ),
    *(
        Rule(
            condition=f"{name}_text IS NOT NULL AND {name} IS NULL",
            detail=f"'{name} is ' || quoted({name}_text) || ', expected a whole number'",
        )
        for name in INTEGERS
    ),
    Rule(
        condition="status NOT BETWEEN -2147483648 AND 2147483647",
        detail="'status is ' || shown(status_text, status) || ', which is no status'",
    ),
)
_NEGATIVE_DURATION = tuple(
    Rule(
        condition=f"{name} < {-CLOCK_NOISE_US if name == 'queue_us' else 0}",
        detail=f"{name}_name || ' is ' || shown({name}_text, {name}) || ', which is negative'",
    )
    for name in DURATIONS
)
_NEGATIVE_TOKENS = tuple(Rule(condition=f"{name} < 0", detail=f"'{name} is ' || shown({name}_text, {name})") for name in _TOKENS)
_TOO_LARGE = (
    *(
        Rule(condition=f"{name} > {LARGEST_TOKENS}", detail=f"'{name} is ' || shown({name}_text, {name}) || ', more than 10^12'")
        for name in _TOKENS
    ),
    *(
        Rule(condition=f"{name} > {LONGEST_US}", detail=f"{name}_name || ' is ' || shown({name}_text, {name}) || ', more than 30 days'")
        for name in DURATIONS
    ),
)
_CACHED_EXCEEDS_INPUT = (
    Rule(
        condition="cached_input_tokens > coalesce(input_tokens, 0)",
        detail="'cached_input_tokens is ' || cached_input_tokens || ' of ' || coalesce(input_tokens::VARCHAR, 'no') || ' input_tokens'",
    ),
)
_USAGE_MISSING = (
    Rule(
        condition="coalesce(status, 200) BETWEEN 200 AND 299 AND (input_tokens IS NULL OR output_tokens IS NULL)",
        detail=_are_empty({name: f"{name} IS NULL" for name in ("input_tokens", "output_tokens")})
        + " || ', with status ' || coalesce(status, 200)",
    ),
)
_INCONSISTENT_TIMING = (
    Rule(
        condition=f"clamped(queue_us) + coalesce(inference_us, prefill_us + decode_us) > e2e_us + {CLOCK_NOISE_US}",
        detail="'queue and inference take ' || (clamped(queue_us) + coalesce(inference_us, prefill_us + decode_us)) "
        "|| ' us, e2e is ' || e2e_us || ' us'",
    ),
)
_FUTURE = (
    Rule(
        condition=f"received_us > getvariable('now_us') + {FUTURE_US}",
        detail="'received_at is ' || shown_instant(received_at_text, received_at_value) "
        "|| ', more than 60 s after the clock of this machine'",
    ),
)


def _verdict(role: Role | None) -> str:
    """The branches of a CASE that gives the first of the reasons to refuse a row, with its detail."""
    rules = _rules(role)
    return " ".join(
        f"WHEN {rule.condition} THEN {{'reason': '{reason}', 'detail': {rule.detail}}}"
        for reason in Reason  # in order of precedence
        for rule in rules.get(reason, ())
    )


MACROS = (
    # What was found, short enough to print.
    """CREATE OR REPLACE MACRO quoted(x) AS '''' || replace(left(x, 60), chr(0), '�') || CASE WHEN length(x) > 60 THEN '…' ELSE '' END
    || ''''""",
    # A value that came without a text.
    "CREATE OR REPLACE MACRO shown(x, value) AS quoted(coalesce(x, value::VARCHAR))",
    "CREATE OR REPLACE MACRO shown_instant(x, us) AS quoted(coalesce(x, make_timestamp(us)::VARCHAR || 'Z'))",
    "CREATE OR REPLACE MACRO clamped(us) AS CASE WHEN us < 0 THEN 0 ELSE us END",
    # A whole number; null if the text is none. Beyond 18 digits any number is too large in the same way.
    """CREATE OR REPLACE MACRO whole(x) AS CASE
    WHEN regexp_full_match(x, '-?[0-9]{1,18}') THEN x::BIGINT
    WHEN regexp_full_match(x, '-?[0-9]{19,100}') THEN CASE WHEN ltrim(x, '-0') = '' THEN 0
        WHEN length(ltrim(x, '-0')) <= 18 THEN ltrim(x, '-0')::BIGINT ELSE 1000000000000000000 END
        * CASE WHEN x[1] = '-' THEN -1 ELSE 1 END
    END""",
    # A whole number and the digits behind its point, rounded half even.
    """CREATE OR REPLACE MACRO rounded(number, rest) AS number + CASE
    WHEN rest = '' OR rest[1] < '5' THEN 0
    WHEN rest[1] > '5' OR rtrim(rest, '0') <> '5' THEN 1
    ELSE number % 2 END""",
    # All digits of a decimal and the place of its point, rounded. A lambda over a list of one names a value, so that it is computed once.
    """CREATE OR REPLACE MACRO rounded_at(digits, point) AS list_transform([{
        'front': CASE WHEN point <= 0 THEN '0' ELSE ltrim(rpad(digits, greatest(point, length(digits))::INTEGER, '0')[1:point], '0') END,
        'rest': CASE WHEN point < 0 THEN repeat('0', -point) || digits ELSE digits[point + 1:] END}],
    lambda split: CASE WHEN length(split.front) > 18 THEN 1000000000000000000
        ELSE rounded(coalesce(try_cast(split.front AS BIGINT), 0), split.rest) END)[1]""",
    """CREATE OR REPLACE MACRO scaled(number, power) AS list_transform([number], lambda parts: list_transform([{
        'digits': parts.a || parts.b, 'point': length(parts.a) + power + coalesce(try_cast(parts.c AS INTEGER), 0)}],
    lambda moved: rounded_at(moved.digits, moved.point))[1])[1]""",
    # A decimal times ten to the power, rounded half even to a whole number; null if the text is no decimal.
    # The first two cases are exact by themselves and quick.
    r"""CREATE OR REPLACE MACRO scaled_decimal(x, power) AS CASE
    WHEN power = 6 AND regexp_full_match(x, '-?[0-9]{1,11}(\.[0-9]{1,6})?') THEN (x::DECIMAL(24, 6) * 1000000::DECIMAL(7, 0))::BIGINT
    WHEN power = 3 AND regexp_full_match(x, '-?[0-9]{1,11}(\.[0-9]{1,3})?') THEN (x::DECIMAL(24, 6) * 1000::DECIMAL(4, 0))::BIGINT
    WHEN length(x) <= 100 AND regexp_full_match(x, '-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?') THEN
        CASE WHEN x[1] = '-' THEN -1 ELSE 1 END
        * scaled(regexp_extract(x, '^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$', ['a', 'b', 'c']), power)
    END""",
    "CREATE OR REPLACE MACRO duration_us(x, power) AS CASE power WHEN 0 THEN whole(x) ELSE scaled_decimal(x, power) END",
    # Microseconds since 1970 of an RFC 3339 text; null if it is none, has no offset, or names no real instant.
    r"""CREATE OR REPLACE MACRO offset_us(x) AS CASE WHEN x[-1] IN ('Z', 'z') THEN 0
    ELSE (x[-5:-4]::BIGINT * 60 + x[-2:]::BIGINT) * 60000000 * CASE WHEN x[-6] = '-' THEN -1 ELSE 1 END END""",
    r"""CREATE OR REPLACE MACRO fraction_us(digits) AS rounded(rpad(digits, 6, '0')[1:6]::BIGINT, digits[7:])""",
    # The first case is the usual one, and quick.
    r"""CREATE OR REPLACE MACRO rfc3339_us(x) AS CASE WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]'
        '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])') THEN
    epoch_us(try_cast(x AS TIMESTAMPTZ))
    WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]'
        '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,30})?([Zz]|[-+]([01][0-9]|2[0-3]):[0-5][0-9])') THEN
    epoch_us(try_cast(x[1:10] || ' ' || x[12:19] AS TIMESTAMP)) - offset_us(x)
    + CASE WHEN x[20] = '.' THEN fraction_us(regexp_extract(x, '\.([0-9]+)', 1)) ELSE 0 END END""",
    # From one instant to another, as text; null if one is empty. Both have an offset or none. An offending text stays as it is.
    r"""CREATE OR REPLACE MACRO has_offset(x) AS regexp_full_match(x, '.*([Zz]|[-+][0-9]{2}:[0-9]{2})')""",
    """CREATE OR REPLACE MACRO elapsed_us(a, b) AS CASE WHEN nullif(a, '') IS NULL OR nullif(b, '') IS NULL THEN NULL
    WHEN has_offset(a) <> has_offset(b) THEN b
    ELSE list_transform([{'a': rfc3339_us(CASE WHEN has_offset(a) THEN a ELSE a || 'Z' END),
        'b': rfc3339_us(CASE WHEN has_offset(b) THEN b ELSE b || 'Z' END)}],
    lambda span: CASE WHEN span.a IS NULL THEN a WHEN span.b IS NULL THEN b ELSE (span.b - span.a)::VARCHAR END)[1] END""",
    # Microseconds since 1970, to be added to; an offending text stays as it is.
    "CREATE OR REPLACE MACRO instant_us(x) AS coalesce(rfc3339_us(nullif(x, ''))::VARCHAR, x)",
    # Only the years 1 to 9999 can be written again.
    """CREATE OR REPLACE MACRO within_calendar(us) AS
    CASE WHEN us BETWEEN -62135596800000000 AND 253402300799999999 THEN us END""",
)

_CLEANED = ", ".join(
    [
        "line, record, malformed",
        *(f"nullif({name}, '') AS {name}" for name in _NAMES),
        *(f"nullif({name}_text, '') AS {name}_text, {name}_value" for name in TYPED),
        *(f"{name}_power, {name}_name, {name}_twice" for name in DURATIONS),
        "received_at_power, received_at_twice",
    ]
)


def _parsed(powers: Mapping[str, Collection[int]]) -> str:
    """The numbers of the texts. What a column cannot be is left out: DuckDB plans these expressions for each chunk anew."""
    return ", ".join(
        [
            "*",
            *(f"coalesce({name}_value, whole({name}_text)) AS {name}" for name in INTEGERS),
            *(f"coalesce({name}_value, {_duration(name, powers.get(name))}) AS {name}" for name in DURATIONS),
            f"within_calendar(coalesce(received_at_value, {_instant(powers.get('received_at'))})) AS received_us",
        ]
    )


def _duration(name: str, powers: Collection[int] | None) -> str:
    match powers if powers is None else [*powers]:
        case []:
            return "NULL::BIGINT"
        case [0]:
            return f"whole({name}_text)"
        case [power]:
            return f"scaled_decimal({name}_text, {power:d})"
    return f"duration_us({name}_text, {name}_power)"


def _instant(powers: Collection[int] | None) -> str:
    text = "rfc3339_us(received_at_text)"
    if powers is not None and not powers:
        return text
    return f"CASE WHEN received_at_power IS NULL THEN {text} ELSE scaled_decimal(received_at_text, received_at_power) END"


_VERDICT = {role: _verdict(role) for role in (None, *Role)}

# An event's columns in the order of the table that they go to, in its types.
EVENT_COLUMNS = {
    "received_at": "make_timestamp(received_us)",
    "queue_us": "clamped(queue_us)",
    **{name: name for name in DURATIONS if name != "queue_us"},
    "input_tokens": "input_tokens",
    "cached_input_tokens": "coalesce(cached_input_tokens, 0)",
    "output_tokens": "output_tokens",
    "status": "coalesce(try_cast(status AS INTEGER), 200)",
    "async_header": "coalesce(async_header_value, lower(async_header_text) = 'true', false)",
    "clock_clamped": "coalesce(queue_us < 0, false)",
    "account": "account",
    "request_id": "request_id",
    "model": "model",
    "queue": "coalesce(queue, 'standard')",
    "cold_start": "CASE lower(cold_start) WHEN 'false' THEN NULL WHEN 'true' THEN 'true' ELSE cold_start END",
    "node": "node",
}
_JUDGED = ", ".join(
    [
        "line, record",
        "verdict.reason AS reason",
        "replace(verdict.detail, chr(0), '�') AS detail",
        "CASE WHEN account IS NOT NULL AND length(account) <= 200 AND NOT contains(account, chr(0)) THEN account END AS readable_account",
        "received_us",
        *(f"{value} AS event_{name}" for name, value in EVENT_COLUMNS.items()),
    ]
)


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define what the rules, and the expressions of a mapping, call."""
    for macro in MACROS:
        connection.execute(macro)


def judge(
    connection: duckdb.DuckDBPyConnection, *, now_us: int, role: Role | None, skips: bool, kept: Sequence[str] = (),
    powers: Mapping[str, Collection[int]] | None = None,
) -> None:  # fmt: skip
    """Make the temporary table `judged` from `mapped`, in its order; with `skips`, without the records that have a `skipped`; `kept` are
    columns that are taken over as they are.

    Its columns: line, record, reason and detail (null for an event), readable_account and received_us (null if they cannot be read), the
    event's (`event_...`), and of an observation record_id, trace and header. `now_us` is the ingesting clock, microseconds since 1970.
    `powers` are those of ten that a duration and `received_at` may have; any, if they are not given.
    """
    connection.execute(f"SET VARIABLE now_us = {now_us:d}::BIGINT")
    of_observation = [] if role is None else [f"nullif({name}, '') AS {name}" for name in OBSERVATION_NAMES]
    cleaned = ", ".join([_CLEANED, *of_observation, *kept])
    judged = ", ".join([_JUDGED, *(() if role is None else OBSERVATION_NAMES), *kept])
    # The limit keeps the filter above the mapping: below it, DuckDB would copy what each record was split into for every single value.
    relation = f"(FROM (FROM mapped LIMIT {2**62}) WHERE skipped IS NULL)" if skips else "mapped"
    for projection in (cleaned, _parsed(powers or {}), f"*, CASE {_VERDICT[role]} END AS verdict", judged):
        relation = f"(FROM {relation} SELECT {projection})"
    connection.execute(f"CREATE TEMP TABLE judged AS FROM {relation}")
