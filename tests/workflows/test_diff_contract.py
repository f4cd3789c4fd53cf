"""`ledger contract diff`: what changed in meaning between two files, in every form."""

import json
from pathlib import Path

from tests.conftest import ledger_on
from tests.contract.golden import QUIET, edited

ledger = ledger_on("postgresql://nobody@127.0.0.1:1/no-database")
CHANGED = (
    *("version: 3", "version: 4", "multiplier: 30%", "multiplier: 35%", 'clause: "5.2"', 'clause: "5.3"'),
    *("target: 300ms", "target: 0.3s", "accept: []", 'accept: [{code: no_cap, reason: "as agreed"}]'),
)

SLOW = "Tier “slow”: a request with a latency above 300 ms costs {share} of the base rates, before the multiplier of its queue."


def written(folder: Path, name: str, *edit: str) -> Path:
    file = folder / name
    file.write_text(edited(QUIET, list(edit)))
    return file


def test_changes_are_told_with_both_sentences_and_their_clauses(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old.yaml"), written(tmp_path, "new.yaml", *CHANGED)
    result = ledger("contract", "diff", old, new)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Contract “acme-bank-llm”: what changes in meaning from version 3 to version 4\n")
    assert (
        "The price by latency\n\n"
        "  2. Changed\n"
        "       before: [3.2] Tier “slow”: a request with a latency above 300 ms costs 30% of the base rates,\n"
        "         before the multiplier of its queue.\n"
        "       after:  [3.2] Tier “slow”: a request with a latency above 300 ms costs 35% of the base rates,\n"
        "         before the multiplier of its queue.\n"
    ) in result.stdout
    assert "after:  [5.3] The queue “standard” changes no price" in result.stdout
    assert result.stdout.endswith("\nAdded: the accepted warning “no_cap”.\n")
    assert "The promise" not in result.stdout


def test_the_same_in_chinese_markdown_and_json(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old.yaml"), written(tmp_path, "new.yaml", *CHANGED)
    chinese = ledger("contract", "diff", old, new, "--language", "zh", "--format", "markdown").stdout
    assert "   - 变更后：\\[3.2\\] 档位 “slow”：" in chinese and "- 新增：已确认的提示“no\\_cap”。" in chinese
    told = json.loads(ledger("contract", "diff", old, new, "--format", "json").stdout)
    assert told["notes"] == ["Added: the accepted warning “no_cap”."]
    assert told["changes"][1] == {
        "kind": "changed",
        "code": "pricing.tier",
        "subject": ["slow"],
        "section": "pricing",
        "before": {"clause": "3.2", "text": SLOW.format(share="30%")},
        "after": {"clause": "3.2", "text": SLOW.format(share="35%")},
    }


def test_equal_meaning_is_no_change_and_a_changed_example_is_told_apart(tmp_path: Path) -> None:
    old = written(tmp_path, "old.yaml")
    new = written(tmp_path, "new.yaml", "target: 300ms", "target: 0.3s")
    other = written(tmp_path, "other.yaml", "prefill_ms: 90", "prefill_ms: 91")
    assert ledger("contract", "diff", old, new).stdout.endswith("\n\nThere is no change in meaning.\n")
    assert ledger("contract", "diff", old, other).stdout.endswith(
        "There is no change in meaning.\n\nChanged: the example “exactly 100 ms is the standard tier”.\n"
    )


def test_files_with_errors_are_told_as_the_check_tells_them(tmp_path: Path) -> None:
    old, new = written(tmp_path, "old.yaml", "target: 300ms", "target: 300"), written(tmp_path, "new.yaml")
    for files in ((old, new), (new, old), (tmp_path / "missing.yaml", new)):
        result = ledger("contract", "diff", *files)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error bad_duration" in result.stderr or "error unreadable_file" in result.stderr
