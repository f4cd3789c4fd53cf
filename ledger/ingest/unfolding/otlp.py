"""OTLP, in JSON or in protobuf: a flat record for each span of a trace (`otlp_json` says which fields it has).

Source: opentelemetry-proto; specification, section 2.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from ledger.ingest.unfolding import otlp_json, otlp_protobuf


def fits(start: bytes) -> bool:
    """Whether it begins like OTLP in JSON or in protobuf."""
    return otlp_json.fits(start) or otlp_protobuf.fits(start)


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The records of the content, whichever it is: JSON has no byte below that of a tab."""
    remaining = iter(pieces)
    first = next((piece for piece in remaining if piece), b"")
    in_json = first[:1] != b"\0" and first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    content = chain([first], remaining)
    return otlp_json.unfold(content) if in_json else otlp_protobuf.unfold(content)
