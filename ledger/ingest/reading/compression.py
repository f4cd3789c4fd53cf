"""Compressed files: which compression it is by the first bytes, and the content piece by piece, proved to be whole.

DuckDB reads what is there of a file that was cut off or damaged and says nothing, so what it reads is looked through here before.
Source: specification, section 2 ("nothing is dropped in silence").
"""

import zlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from ledger.errors import LedgerError

PIECE_BYTES = 1 << 14  # small, since a hostile piece may become thousands of times as large

_GZIP_BITS = 31  # of zlib: gzip's header, and its checksum at the end


class Compression(StrEnum):
    """How a file is compressed, by DuckDB's names."""

    NONE = "uncompressed"
    GZIP = "gzip"
    ZSTANDARD = "zstd"


_MAGIC = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTANDARD}


def compression_of(start: bytes) -> Compression:
    """The compression of a file that begins with these bytes; four are enough."""
    return next((compression for magic, compression in _MAGIC.items() if start.startswith(magic)), Compression.NONE)


def decompressed(path: Path, compression: Compression) -> Iterator[bytes]:
    """The content in pieces. Raises LedgerError if the file is cut off, damaged, or followed by something else."""
    with path.open("rb") as file:
        pieces = iter(lambda: file.read(PIECE_BYTES), b"")
        if compression is Compression.NONE:
            yield from pieces
            return
        import zstandard

        def opened() -> "zlib._Decompress | zstandard.ZstdDecompressionObj":
            return zlib.decompressobj(_GZIP_BITS) if compression is Compression.GZIP else zstandard.ZstdDecompressor().decompressobj()

        reader = None
        try:
            for piece in pieces:
                # A file may be several compressed streams in a row, and zeros may fill its last block.
                while piece and (reader is not None or piece.strip(b"\0")):
                    reader = reader or opened()
                    yield reader.decompress(piece)
                    piece, reader = (reader.unused_data, None) if reader.eof else (b"", reader)
        except (zlib.error, zstandard.ZstdError) as error:
            raise LedgerError(f"{path}: the {compression} file is damaged", cure="fetch it again; nothing of it was loaded") from error
    if reader is not None:
        raise LedgerError(f"{path}: the {compression} file is cut off", cure="fetch it again; nothing of it was loaded")
