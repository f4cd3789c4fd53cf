"""Whether the document that a contract names is the one whose checksum it gives: only a plain file beside the contract is looked at.

Takes the path of the contract's file and the contract, gives a warning if they differ. Source: specification, section 3 (`governing_text`).
"""

import stat
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path

from ledger.contract.diagnostic import Finding, warning
from ledger.contract.model import Contract

MAX_BYTES = 256 * 1024 * 1024  # of a document that is read


def check_document(path: Path, contract: Contract) -> Iterator[Finding]:
    """None where the contract names no document, where no such file lies in its folder, and where it cannot be read."""
    governing = contract.governing_text
    if governing is None or governing.document != Path(governing.document).name:
        return
    try:
        document = path.parent / governing.document
        status = document.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return
        with document.open("rb") as opened:
            found = file_digest(opened, "sha256").hexdigest()
    except (OSError, ValueError):  # ValueError: a name that no file has
        return
    if found != governing.sha256:
        told = f"`{governing.sha256}`, while {governing.document} beside this file has {found}"
        cure = "write the checksum of the document that was signed, or put that document there"
        yield warning("other_document", ("governing_text", "sha256"), told, "the SHA-256 of the document", cure)
