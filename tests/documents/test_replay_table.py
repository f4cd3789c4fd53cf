"""A month under two contracts: names stay text, and only what differs is listed."""

import re
from dataclasses import replace
from pathlib import Path

from markdown_it import MarkdownIt

from ledger.documents.replay_table import replay_json, replay_markdown, replay_text
from ledger.documents.replay_words import CHINESE, ENGLISH, WORDS, ReplayNote, note_text
from ledger.settlement.calendar import zone
from ledger.settlement.difference import line_pairs
from ledger.settlement.statement import Statement

from .statements import build_statement, read_case

CASE = Path(__file__).parents[1] / "golden" / "cases" / "variants-and-queues"
HOSTILE = "a | <b> \x1b[31m **c** \u202e"


def statement() -> Statement:
    return build_statement(*read_case(CASE))


def test_a_month_and_itself_do_not_differ() -> None:
    same = statement()
    told = replay_json(same, same, [])["difference"]
    assert (told["lines"], told["windows"], set(told["totals"].values())) == ([], [], {"0.00"})
    assert f"Lines that are equal: {len(line_pairs(same, same))}, together" in replay_text(same, same, [], ENGLISH)


def test_lines_of_other_rates_and_multipliers_are_one_pair() -> None:
    before = statement()
    first, *others = before.lines
    assert first.rate is not None and first.multiplier is not None
    other = replace(first, version=9, rate=first.rate * 2, multiplier=first.multiplier * 2, amount_minor=first.amount_minor + 7)
    [line] = replay_json(before, replace(before, lines=(*others, other)), [])["difference"]["lines"]
    assert line["amount"]["difference"] == "0.07" and line["quantity"]["before"] == line["quantity"]["after"] == first.quantity


def test_a_line_of_one_side_alone_counts_in_full() -> None:
    before = statement()
    [line] = replay_json(before, replace(before, lines=before.lines[1:]), [])["difference"]["lines"]
    assert (line["amount"]["after"], line["quantity"]["after"]) == ("0.00", 0)
    assert line["amount"]["difference"] == f"-{line['amount']['before']}"


def test_a_name_stays_text_in_every_form() -> None:
    before = statement()
    after = replace(before, lines=tuple(replace(line, model=HOSTILE, variant=HOSTILE) for line in before.lines))
    for words in (ENGLISH, CHINESE):
        text, markdown = (form(before, after, [HOSTILE], words) for form in (replay_text, replay_markdown))
        assert not {"\x1b", "\u202e"} & set(text + markdown)
        tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(markdown)
        children = [child for token in tokens for child in token.children or ()]
        assert {child.type for child in children} <= {"text", "text_special"}
        rows = [row for row in markdown.split("\n") if row.startswith("| a \\|")]
        assert rows and len([token for token in tokens if token.type == "th_open"]) % 4 == 0


def test_both_languages_have_the_same_words() -> None:
    assert {tag: set(words.texts) for tag, words in WORDS.items()} == {"en": set(ENGLISH.texts), "zh": set(ENGLISH.texts)}


def test_a_month_replayed_in_chinese_has_no_english_word_but_names() -> None:
    before = build_statement(*read_case(CASE.with_name("pools-and-shared-cold-start")))
    after = replace(before, lines=(), breaches=())
    notes = [
        ReplayNote(word, dict.fromkeys(("name", "first", "last", "month", "account", "zone", "other_name", "other_zone"), "“X”"))
        for word in CHINESE.texts
        if word.startswith("note_")
    ]
    for form in (replay_text, replay_markdown):
        text = form(before, after, [note_text(note, CHINESE) for note in notes], CHINESE)
        names = {name for line in before.lines for name in (line.model, line.queue, line.variant)}
        names |= {tier.name for tier in before.contract.pricing.tiers} | {"Token", before.contract.money.currency}
        for name in names - {None}:
            text = text.replace(str(name), "")
        assert re.findall("[A-Za-z]{2,}", text) == []
        assert before.breaches and all(f"{one.start.astimezone(zone('Asia/Shanghai')):%Y-%m-%d}" in text for one in before.breaches)
