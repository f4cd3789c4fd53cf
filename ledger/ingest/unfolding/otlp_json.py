"""OTLP in JSON: TracesData or ExportTraceServiceRequest, one a line or one document over many lines; a flat record for each span.

A record has trace_id, span_id, parent_span_id (hex, small letters), name, kind, start_ns, end_ns, status, scope (a name), and the objects
`attributes` and `resource`. Events and links are left out: they may hold prompts. Numbers are the texts that stand in the file. Of a line
with logs or metrics the record names only the signal. Source: opentelemetry-proto, `docs/specification.md` (JSON encoding); specification,
section 2.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.errors import LedgerError
from ledger.ingest.unfolding.long_texts import LONGEST_TEXT, without_long_texts

LARGEST_DOCUMENT_BYTES = 64_000_000  # of a line, or of a document over many lines

SIGNALS = ("resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles")
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"(?:" + "|".join(SIGNALS).encode() + rb")\"\s*:")
_HEX = re.compile(r"[0-9a-fA-F]+")
_NAMED = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")

Object = dict[str, Any]


def fits(start: bytes) -> bool:
    """Whether the first key of the first object is a signal of OTLP."""
    return _START.match(start) is not None


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """A record a span, in order of the file. A line or a span that cannot be read stays a text that is no object."""
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
    lines = _lines(pieces)
    first: list[tuple[int, bytes]] = []
    for number, line in lines:
        first.append((number, line))
        if _document(decoder, line) is not None:
            break
        if len(first) == 1 and not _is_opening(line):
            break
    else:
        documents = _documents(decoder, b"\n".join(line for _, line in first))
        if documents is not None:
            for document in documents:
                for record in records(document):
                    yield first[0][0], record
            return
    yield from _of_lines(decoder, first)
    yield from _of_lines(decoder, lines)


def records(document: object) -> Iterator[bytes]:
    """The flat records of one TracesData; of another signal, one that names it."""
    if not isinstance(document, dict) or not any(isinstance(document.get(signal), list) for signal in SIGNALS):
        yield _no_record(document)
        return
    for signal in SIGNALS[1:]:
        if document.get(signal):
            yield json.dumps({signal: "no requests"}).encode()
    for resource_spans in document.get("resourceSpans") or ():
        try:
            resource = json.dumps(_attributes((resource_spans.get("resource") or {}).get("attributes")))
            scopes = list(resource_spans.get("scopeSpans") or ())
        except (AttributeError, KeyError, TypeError, ValueError):
            yield _no_record(resource_spans)
            continue
        for scope_spans in scopes:
            yield from _of_scope(scope_spans, resource)


def flat_record(span: Object, resource: str) -> bytes:
    """One record, without long texts; `resource`, which many spans share, is JSON already."""
    text = json.dumps(span)
    if len(text) > LONGEST_TEXT:
        text = json.dumps(without_long_texts(span))
    return f'{text[:-1]}, "resource": {resource}}}'.encode()


def _of_scope(scope_spans: Any, resource: str) -> Iterator[bytes]:
    try:
        scope = (scope_spans.get("scope") or {}).get("name")
        spans = list(scope_spans.get("spans") or ())
    except (AttributeError, TypeError):
        yield _no_record(scope_spans)
        return
    for span in spans:
        try:
            record = {
                "trace_id": hex_id(span.get("traceId"), size=16),
                "span_id": hex_id(span.get("spanId"), size=8),
                "parent_span_id": hex_id(span.get("parentSpanId"), size=8),
                "name": span.get("name"),
                "kind": span.get("kind"),
                "start_ns": span.get("startTimeUnixNano"),
                "end_ns": span.get("endTimeUnixNano"),
                "status": (span.get("status") or {}).get("code"),
                "scope": scope,
                "attributes": _attributes(span.get("attributes")),
            }
            yield flat_record(record, resource)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            yield _no_record(span)


def hex_id(text: object, *, size: int) -> str | None:
    """An id of this many bytes in small hex digits; None if it is none, or zero. Base64, which some write, has another length."""
    if not isinstance(text, str):
        return None
    if len(text) == 2 * size:
        found = text.lower() if _HEX.fullmatch(text) else ""
    else:
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        found = content.hex() if len(content) == size else ""
    return found if found.strip("0") else None


def _attributes(pairs: Any) -> Object:
    return {pair["key"]: _value(pair.get("value")) for pair in pairs or ()}


def _value(value: Any) -> object:
    """The one value that an AnyValue has."""
    for name in _NAMED:
        if name in value:
            return value[name]
    if "arrayValue" in value:
        return [_value(item) for item in (value["arrayValue"] or {}).get("values") or ()]
    if "kvlistValue" in value:
        return _attributes((value["kvlistValue"] or {}).get("values"))
    return None


def _no_record(found: object) -> bytes:
    """What the event rules refuse, and tell from another that is refused."""
    return json.dumps([found]).encode()


def _is_opening(line: bytes) -> bool:
    """Whether a document over many lines may begin so: a line of it ends between two values."""
    return line.rstrip()[-1:] in (b"{", b"[", b",")


def _document(decoder: json.JSONDecoder, line: bytes) -> Object | None:
    try:
        found = decoder.decode(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _documents(decoder: json.JSONDecoder, content: bytes) -> list[object] | None:
    """The values that stand one after another; None if something else is between them."""
    found: list[object] = []
    try:
        text = content.decode("utf-8-sig").strip()
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:].lstrip()
    except (ValueError, RecursionError):
        return None
    return found


def _of_lines(decoder: json.JSONDecoder, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    for number, line in lines:
        document = _document(decoder, line)
        if document is None:
            yield number, _no_record(line.decode(errors="replace"))
            continue
        for record in records(document):
            yield number, record


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their number from 1."""
    rest: list[bytes] = []
    size = number = 0
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for end in whole:
            number += 1
            line = b"".join([*rest, end])
            rest, size = [], 0
            if not line.isspace() and line:
                yield number, line
        rest.append(last)
        size += len(last)
        if size > LARGEST_DOCUMENT_BYTES:
            raise LedgerError(f"line {number + 1} has more than {LARGEST_DOCUMENT_BYTES:,} bytes", cure="export fewer spans a line")
    line = b"".join(rest)
    if line and not line.isspace():
        yield number + 1, line
