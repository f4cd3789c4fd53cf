"""Texts of a contract that end too early: takes the tree of a file, gives a warning for each that goes on in a comment.

A template has comments after values, as `# what it is`; `Road #2` is a text whose end YAML leaves out.
Source: specification, section 3, "Lint".
"""

from collections.abc import Iterator

from ledger.contract.diagnostic import Finding, Path, warning
from ledger.contract.source import Entries, Keys, Node, Text, printable

FREE_TEXTS = frozenset({"title", "name", "tax_id", "address", "accounts", "details", "document", "clause", "it", "reason"})


def lint_texts(root: Node) -> Iterator[Finding]:
    """The warnings about the file, in its order."""
    yield from _cut_off(root, ())


def _cut_off(node: Node, path: Path) -> Iterator[Finding]:
    match node:
        case Keys(pairs=pairs):
            for key, (_, value) in pairs.items():
                yield from _cut_off(value, (*path, key))
        case Entries(items=items):
            for at, item in enumerate(items):
                yield from _cut_off(item, (*path, at))
        case Text(comment=comment) if comment[1:].strip() and not comment[1:2].isspace() and not comment.startswith("##"):
            if FREE_TEXTS & set(path[-2:]):
                found = f"`{printable(node.text)}`, and after it the comment `{printable(comment)}`"
                cure = "put the whole text in quotes, or write a space after # if it is a comment"
                yield warning("text_cut_off", path, found, "a text that is read to its end", cure)
        case _:
            pass
