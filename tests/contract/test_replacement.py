"""Values put into the text of a contract: whatever they hold, the reader reads them back, and nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.contract.diagnostic import Refusal
from ledger.contract.reader import contract_texts
from ledger.contract.replacement import replace_texts, written
from ledger.contract.scalar import parse_line
from ledger.contract.unseen import find_unseen

FILE = b"""# A comment: it stays.
id: old  # so does this
parties:
  customer: {name: "Old, Ltd", accounts: [one, 'two'], tax_id: X}
"""


def is_line(text: str) -> bool:
    try:
        return parse_line(text) == text
    except Refusal:
        return False


SIGNS = st.text("ab,]}[{:#'\"\\ \n-?&*!|>%@`~", min_size=1, max_size=9)


@given(st.text(max_size=40).filter(is_line), st.lists(SIGNS.filter(is_line), min_size=1))
def test_every_line_of_text_is_read_back_or_refused(name: str, accounts: list[str]) -> None:
    try:
        content = replace_texts(FILE, {("parties", "customer", "name"): name, ("parties", "customer", "accounts"): accounts})
    except Refusal:
        assert find_unseen(f"'{name}'", is_stored=False) is not None
        return
    assert contract_texts(content) == {"id": "old", "parties": {"customer": {"name": name, "accounts": accounts, "tax_id": "X"}}}


def test_comments_and_what_stands_beside_stay_as_they_are() -> None:
    texts = {("id",): "new", ("parties", "customer", "name"): "L'Oréal: Paris", ("parties", "customer", "accounts"): ["null", "三", "a, b"]}
    assert replace_texts(FILE, texts).decode() == (
        "# A comment: it stays.\nid: new  # so does this\nparties:\n"
        "  customer: {name: 'L''Oréal: Paris', accounts: ['null', 三, 'a, b'], tax_id: X}\n"
    )


@pytest.mark.parametrize("text", ["a\nb", "a\u2028b", "a\ufeffb", "a\u202eb", "a\x00b"], ids=ascii)
def test_what_cannot_be_seen_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="text that can be seen"):
        written(text)
