"""New values in the text of a contract, at the places of the old ones: bytes of a sound file and texts by path in, bytes out.

Comments and layout stay. A text is written so that the reader of contracts reads it back, whatever it holds: signs of YAML mean nothing.
Source: specification, section 3 (every scalar is the text that stands in the file).
"""

from collections.abc import Mapping, Sequence

from ledger.contract.diagnostic import Path, Refusal
from ledger.contract.source import Entries, Keys, Node, Text, read_source


def written(text: str) -> str:
    """The text as a contract writes it: plain if it reads back so, else in quotes. Refusal if no contract can hold it.

    >>> print(written("Acme Bank Co."), written("Smith, Jones #1"), written("null"), written("L'Oréal: Paris"))
    Acme Bank Co. 'Smith, Jones #1' 'null' 'L''Oréal: Paris'
    """
    quoted = "'" + text.replace("'", "''") + "'"
    for form in (text, quoted):
        root, diagnostics = read_source(f"[{form}]".encode("utf-8", "replace"), "")
        if not diagnostics and isinstance(root, Entries) and [item.text for item in root.items if isinstance(item, Text)] == [text]:
            return form
    raise Refusal("bad_character", "text that can be seen, on one line", "remove characters that cannot be seen")


def replace_texts(content: bytes, texts: Mapping[Path, str | Sequence[str]]) -> bytes:
    """The file with other texts at the paths; a list is given whole. Each path is in the file, and no list is empty."""
    root, diagnostics = read_source(content, "")
    assert root is not None and not diagnostics, "the contract is sound"
    source = content.decode("utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits = [(*_extent(_node_at(root, path), starts), new) for path, new in texts.items()]
    for start, end, new in sorted(edits, reverse=True):
        source = source[:start] + ", ".join(map(written, [new] if isinstance(new, str) else new)) + source[end:]
    return source.encode("utf-8")


def _node_at(node: Node, path: Path) -> Node:
    for part in path:
        if isinstance(node, Keys):
            _, node = node.pairs[str(part)]
        else:
            assert isinstance(node, Entries) and isinstance(part, int), path
            node = node.items[part]
    return node


def _extent(node: Node, starts: Sequence[int]) -> tuple[int, int]:
    """Where the text begins and ends, quotes included; of a list, from its first entry to the end of its last one."""
    first, last = (node.items[0], node.items[-1]) if isinstance(node, Entries) else (node, node)
    assert isinstance(first, Text) and isinstance(last, Text), "texts are replaced, no keys"
    return starts[first.line - 1] + first.column - 1, starts[last.end_line - 1] + last.end_column - 1
