"""A file as it comes, while it is found out what it is: where it stands, how it is compressed, and the database in which it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from ledger.ingest.reading.compression import Compression, compression_of, decompressed

SOURCE_LINK = "source"  # in the folder: the file by a name without `*` and `[`, which DuckDB would take for a pattern
_MAGIC_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """`path` is what the user named, for messages; `magic` its first bytes, and `compression` what they say."""

    path: Path
    folder: Path  # for what nobody needs when the file is closed
    magic: bytes
    compression: Compression
    connection: duckdb.DuckDBPyConnection  # of an empty database in the folder

    @classmethod
    def of(cls, path: Path, folder: Path, connection: duckdb.DuckDBPyConnection) -> "SourceFile":
        """The file, to which SOURCE_LINK in the folder is a link."""
        with (folder / SOURCE_LINK).open("rb") as file:
            magic = file.read(_MAGIC_BYTES)
        return cls(path=path, folder=folder, magic=magic, compression=compression_of(magic), connection=connection)

    @property
    def link(self) -> Path:
        """The file by the name that DuckDB gets."""
        return self.folder / SOURCE_LINK

    def pieces(self) -> Iterator[bytes]:
        """The content, decompressed; raises LedgerError if it is compressed and not whole."""
        return decompressed(self.path, self.compression)

    def content(self) -> Path:
        """A file with the content, like `pieces`."""
        if self.compression is Compression.NONE:
            return self.link
        content = self.folder / "content"
        with content.open("wb") as file:
            for piece in self.pieces():
                file.write(piece)
        return content

    def start(self, size_bytes: int) -> bytes:
        """The first bytes of the content."""
        start = b""
        for piece in self.pieces():
            start += piece
            if len(start) >= size_bytes:
                break
        return start[:size_bytes]
