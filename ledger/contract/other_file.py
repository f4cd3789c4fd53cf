"""What a file is that is no text in UTF-8: its bytes in, its kind in words out. Source: specification, section 3, first paragraph."""

# What a file begins with that is no text: its first bytes, and what it is. UTF-32 begins as UTF-16 does, so it comes first.
OTHER_FILES = (
    (b"\xff\xfe\x00\x00", "a text in UTF-32"),
    (b"\x00\x00\xfe\xff", "a text in UTF-32"),
    (b"\xff\xfe", "a text in UTF-16"),
    (b"\xfe\xff", "a text in UTF-16"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a document of Word or another office program, or a ZIP archive"),
    (b"\xd0\xcf\x11\xe0", "a document of an older office program"),
    (b"{\\rtf", "a document in Rich Text Format"),
    (b"\x1f\x8b", "a compressed file (gzip)"),
    (b"\x28\xb5\x2f\xfd", "a compressed file (Zstandard)"),
)


def other_file(content: bytes) -> str | None:
    """What the file is, if its first bytes say that it is no text in UTF-8; else None."""
    for start, what in OTHER_FILES:
        if content.startswith(start):
            return what
    return _WIDE.get(bytes(byte == 0 for byte in content[:4]))


# Which of the first four bytes are zero where the first letter is one of English, by encoding without a byte order mark.
_WIDE = {
    b"\0\1\0\1": "a text in UTF-16",
    b"\1\0\1\0": "a text in UTF-16",
    b"\0\1\1\1": "a text in UTF-32",
    b"\1\1\1\0": "a text in UTF-32",
}
