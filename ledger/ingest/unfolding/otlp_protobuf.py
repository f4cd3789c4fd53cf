"""OTLP in protobuf: a TracesData or ExportTraceServiceRequest a file, or messages behind their length; as the records of `otlp_json`.

A length is four bytes, the highest first, as the collector's file exporter writes it. The number of a record's line is that of its group of
spans (ResourceSpans). Source: opentelemetry-proto; specification, section 2.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ledger.errors import LedgerError
from ledger.ingest.unfolding.otlp_json import flat_record

LARGEST_GROUP_BYTES = 64_000_000

_GROUP = 0x0A  # field 1 of a message: resource_spans; of a group: resource
_INSIDE_GROUP = b"\x0a\x12\x1a"  # its resource, its spans, the URL of its schema
_LENGTH_BYTES = 4
_MOST_VARINT_BYTES = 5


def fits(start: bytes) -> bool:
    """Whether it begins with a group of spans, with or without a length before it. No text holds the byte that begins its spans."""
    behind = start[_LENGTH_BYTES:] if start[:1] == b"\0" else start
    if behind[:1] != bytes([_GROUP]) or b"\x12" not in behind:
        return False
    size, end = _varint(behind, 1)
    return 0 < size <= LARGEST_GROUP_BYTES and behind[end : end + 1] in [bytes([tag]) for tag in _INSIDE_GROUP]


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """A record a span. Raises LedgerError if the package that reads protobuf is missing, or the content is cut off or something else."""
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
    except ImportError as error:
        raise LedgerError("reading OTLP in protobuf needs another package", cure="pip install 'ledger[otlp]'", exit_code=4) from error
    for number, content in enumerate(_groups(_Content(pieces)), start=1):
        group = ResourceSpans()
        try:
            group.ParseFromString(content)
        except DecodeError as error:
            raise LedgerError(f"group {number} of its spans is damaged", cure="fetch the file again; nothing of it was loaded") from error
        for record in _records(group):
            yield number, record


def _records(group: Any) -> Iterator[bytes]:
    resource = json.dumps(_attributes(group.resource.attributes))
    for scope_spans in group.scope_spans:
        scope = scope_spans.scope.name
        for span in scope_spans.spans:
            record = {
                "trace_id": _hex_id(span.trace_id, size=16),
                "span_id": _hex_id(span.span_id, size=8),
                "parent_span_id": _hex_id(span.parent_span_id, size=8),
                "name": span.name,
                "kind": span.kind,
                "start_ns": str(span.start_time_unix_nano),
                "end_ns": str(span.end_time_unix_nano),
                "status": span.status.code,
                "scope": scope,
                "attributes": _attributes(span.attributes),
            }
            yield flat_record(record, resource)


def _hex_id(content: bytes, *, size: int) -> str | None:
    return content.hex() if len(content) == size and any(content) else None


def _attributes(pairs: Any) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> object:
    """A number as text: a double's is the shortest that reads as the same double."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return str(value.int_value)
        case "double_value":
            return repr(value.double_value)
        case "bool_value":
            return value.bool_value
        case "bytes_value":
            return value.bytes_value.hex()
        case "array_value":
            return [_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return _attributes(value.kvlist_value.values)
        case _:
            return None


class _Content:
    """Bytes that are taken from the front."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = iter(pieces)
        self.held = bytearray()

    def ahead(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        while len(self.held) < size and (piece := next(self.pieces, None)) is not None:
            self.held += piece
        return bytes(self.held[:size])

    def take(self, size: int) -> bytes:
        """The next bytes, no longer ahead. Raises LedgerError if there are fewer."""
        taken = self.ahead(size)
        if len(taken) < size:
            raise LedgerError("the file is cut off", cure="fetch it again; nothing of it was loaded")
        del self.held[:size]
        return taken


def _groups(content: _Content) -> Iterator[bytes]:
    """The groups of spans: field 1 of each message. Other fields are left out."""
    has_lengths = content.ahead(1) == b"\0"
    left = 0  # of the message that is being read
    while content.ahead(1):
        if has_lengths and left == 0:
            left = int.from_bytes(content.take(_LENGTH_BYTES), "big")
            continue
        tag, tag_end = _varint(content.ahead(2 * _MOST_VARINT_BYTES), 0)
        size, end = _varint(content.ahead(2 * _MOST_VARINT_BYTES), tag_end)
        if tag & 0b111 != 2 or not 0 <= size <= LARGEST_GROUP_BYTES or (has_lengths and end + size > left):
            raise LedgerError("the file is no whole OTLP traces", cure="fetch it again; nothing of it was loaded")
        content.take(end)
        group = content.take(size)
        left -= end + size
        if tag == _GROUP:
            yield group


def _varint(content: bytes, start: int) -> tuple[int, int]:
    """The number and where it ends; -1 if it does not end."""
    number = 0
    for position, byte in enumerate(content[start : start + _MOST_VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return number, start + position + 1
    return -1, start
