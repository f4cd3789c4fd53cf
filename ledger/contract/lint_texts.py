"""Texts of a contract that end too early or too late: takes the tree of a file, gives a warning for each that goes on in a comment, and
for each name that may be several.

`Road #2` and `Chat # Bank` are texts whose end YAML leaves out; templates have comments on lines of their own. In a list of one entry a
line, `- acme, acme-two` is one account.
Source: specification, section 3, "Lint".
"""

from collections.abc import Iterator

from ledger.contract.diagnostic import Finding, Path, warning
from ledger.contract.look_alike import character_words, meant_by
from ledger.contract.source import Entries, Keys, Node, Text, printable

FREE_TEXTS = frozenset({"title", "name", "tax_id", "address", "accounts", "details", "document", "clause", "it", "reason"})

NAMES_APART = frozenset({"accounts", "served_as"})  # lists of names that may hold any character, and hardly ever one that parts names


def lint_texts(root: Node) -> Iterator[Finding]:
    """The warnings about the file, in its order."""
    yield from _texts(root, ())


def _texts(node: Node, path: Path) -> Iterator[Finding]:
    match node:
        case Keys(pairs=pairs):
            for key, (_, value) in pairs.items():
                yield from _texts(value, (*path, key))
        case Entries(items=items):
            for at, item in enumerate(items):
                yield from _texts(item, (*path, at))
        case Text():
            yield from _cut_off(node, path)
            yield from _several(node, path)
        case _:
            pass


def _cut_off(text: Text, path: Path) -> Iterator[Finding]:
    comment = text.comment
    is_cut = comment[1:].strip() and not comment.startswith("##")
    if is_cut and FREE_TEXTS & set(path[-2:]):
        found = f"`{printable(text.text)}`, and after it the comment `{printable(comment)}`"
        cure = "put the text in quotes, with what follows or, if that is a comment, without it"
        yield warning("text_cut_off", path, found, "a text that is read to its end", cure)


def _several(text: Text, path: Path) -> Iterator[Finding]:
    parting = next((character for character in text.text if (meant_by(character) or character) in (",", ";")), None)
    if parting is not None and not text.is_quoted and NAMES_APART & set(path[-2:]):
        found = f"one name `{printable(text.text)}` that holds {character_words(parting)}"
        cure = "write each name on a line of its own, after `- `; or, if it is one, put it in quotes"
        yield warning("several_names", path, found, "one name", cure)
