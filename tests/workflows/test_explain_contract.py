"""The worked numbers under the sentences of a contract, by value, and the command that shows them."""

from pathlib import Path

import pytest

from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.workflows.explain_contract import explain_contract
from tests.conftest import ledger_on
from tests.contract.golden import QUIET, edited

ledger = ledger_on("postgresql://nobody@127.0.0.1:1/no-database")
ACME = Path(__file__).parents[2] / "contracts" / "acme-bank.yaml"


def told(folder: Path, *edit: str) -> dict[str, tuple[str, ...]]:
    """The worked numbers under each sentence of the quiet contract after an edit."""
    file = folder / "contract.yaml"
    file.write_text(edited(QUIET, list(edit)))
    prose = explain_contract(file, "en").prose
    assert prose is not None
    return {sentence.text: sentence.illustrations for section in prose.sections for sentence in section.sentences}


def under(numbers: dict[str, tuple[str, ...]], start: str) -> tuple[str, ...]:
    (found,) = [illustrations for text, illustrations in numbers.items() if text.startswith(start)]
    return found


def test_both_sides_of_each_edge_are_told_with_the_price_of_a_request(tmp_path: Path) -> None:
    assert under(told(tmp_path), "Tier “slow”") == (
        "A latency of exactly 300 ms is in the tier “standard” and meets the target; one of 300.001 ms is in the tier “slow” and is late.",
        "A request with 1,000 input and 500 output tokens at 400 ms is in the tier “slow”: (1,000 × 2.00 + 500 × 8.00) ÷ 1,000,000 × 0.3 "
        "= 0.0018 CNY, without the multiplier of a queue.",
    )


def test_an_edge_that_belongs_to_the_tier_above_it_is_told_so(tmp_path: Path) -> None:
    numbers = told(tmp_path, '"100ms .. 300ms"', '"100ms ..< 300ms"', '"> 300ms"', '">= 300ms"')
    assert under(numbers, "Tier “slow”")[0] == (
        "A latency of 299.999 ms is in the tier “standard” and meets the target; "
        "one of exactly 300 ms is in the tier “slow” and meets the target."
    )


@pytest.mark.parametrize(
    ("start", "edit", "expected"),
    [
        ("The promise", [], "Of 100 requests in a window 1 may be late; with 2 late the window is a breach."),
        (
            "The promise",
            ["percentile: 99", "percentile: 99.9"],
            "Of 1,000 requests in a window 1 may be late; with 2 late the window is a breach.",
        ),
        ("The tolerance", ["up_to: 120%", "up_to: 150%"], "A latency of exactly 450 ms is within it; one of 450.001 ms is beyond it."),
        (
            "In each calendar month",
            ["breaches: 3", "breaches: 1"],
            "Of the breaches of a month within the tolerance, number 1 is forgiven and 2 is refunded. "
            "A breach beyond it, even as the first, is refunded.",
        ),
        ("An alert", [], "The alert is due when 3 breaches are forgiven."),
        (
            "Exemption 3",
            ["limit: 2", "limit: 1"],
            "Of a cold start, a request 60 s after the first one is exempt, one 60.000001 s after it is not exempt. "
            "Of 2 cold starts on one day, 1 is exempt.",
        ),
        (
            "Exemption 2",
            [", evidence: header", ""],
            "Of such requests, one with 20,000 input tokens is not exempt and one with 20,001 input tokens is exempt.",
        ),
        (
            "A success without",
            ["missing_latency: {multiplier: 1.0, objective: late}", "missing_latency: {multiplier: 50%, objective: exclude}"],
            "In the queue “standard”, status 200: billed (1,000 × 2.00 + 500 × 8.00) ÷ 1,000,000 × 0.5 = 0.003 CNY; outside the objective.",
        ),
        (
            "There is a minimum",
            ["minimum_commitment: none", "minimum_commitment: 99.99"],
            "Charges of 49.99 CNY are lifted by a line of 50.00 CNY to 99.99 CNY.",
        ),
        (
            "The refunds of a month",
            ["cap: 100%", "cap: 30%"],
            "On charges of 1,000.00 CNY and refunds of 500.00 CNY the cap takes back 200.00 CNY; 300.00 CNY remain.",
        ),
        (
            "Refunds are damages",
            ["tax: reduces_base", "tax: outside_scope"],
            "On charges of 1,000.00 CNY and refunds of 100.00 CNY the tax is 60.00 CNY, together 960.00 CNY.",
        ),
        (
            "Each line",
            ["half_up", "half_even"],
            "In CNY, 0.005 becomes 0.00, 0.015 becomes 0.02, 0.025 becomes 0.02 and -0.005 becomes 0.00.",
        ),
        (
            "The contract's own latency",
            [],
            "A request that waits 700 ms in the queue, then takes 80 ms to its first token and 150 ms more to its last "
            "has a latency of 930 ms.",
        ),
    ],
)
def test_a_rule_has_its_worked_number(tmp_path: Path, start: str, edit: list[str], expected: str) -> None:
    assert expected in under(told(tmp_path, *edit), start.replace("There is a minimum", "The charges of a month"))


@pytest.mark.parametrize("edit", [["up_to: 120%", "up_to: 100%"], ["breaches: 3", "breaches: 0"]], ids=["no tolerance", "no budget"])
def test_where_nothing_is_forgiven_no_number_says_otherwise(tmp_path: Path, edit: list[str]) -> None:
    numbers = told(tmp_path, *edit)
    assert not any("forgiven" in one or "within" in one for under_sentence in numbers.values() for one in under_sentence)
    assert not any("are forgiven" in sentence for sentence in numbers)


def test_a_tolerance_beyond_every_latency_has_no_number(tmp_path: Path) -> None:
    numbers = told(tmp_path, "up_to: 120%", "up_to: 999999999999999%", "target: 300ms", "target: 36500d")
    assert under(numbers, "The tolerance") == ()


def test_forty_exemptions_are_asked_of_one_table_of_requests(tmp_path: Path) -> None:
    line = '  - {kind: async,           clause: "3.1", input_tokens: "> 20000", evidence: header, multiplier: 1.0}\n'
    many = "".join(line.replace("20000", str(30_000 + place)) for place in range(40))
    numbers = told(tmp_path, line, line + many)
    (told_of_last,) = under(numbers, "Exemption 42, asynchronous")
    assert told_of_last.startswith("Of such requests, one with 30,039 input tokens and the header is not exempt, one with 30,040")


def test_the_wait_that_loses_the_multiplier_is_told_to_the_microsecond(tmp_path: Path) -> None:
    assert under(told(tmp_path), "The queue “vip”")[-1] == (
        "In the tier “slow”: after a wait of exactly 500 ms the multiplier is 0.9, of 500.001 ms it is 0.3, of an unknown wait 0.3."
    )


def test_a_refund_is_shown_as_its_lines(tmp_path: Path) -> None:
    assert under(told(tmp_path, "valued_at: charged_rate", "valued_at: base_rate"), "The tokens of a refund") == (
        "1,000,000 input and 500,000 output tokens of requests in the queue “standard” at 400 ms, charged 1.80 CNY, give back in a "
        "refunded window 2 × 1,000,000 × 2.00 ÷ 1,000,000 × 1, a line of -4.00 CNY for input tokens; "
        "2 × 500,000 × 8.00 ÷ 1,000,000 × 1, a line of -8.00 CNY for output tokens.",
    )


def test_the_command_writes_every_form_in_every_language(tmp_path: Path) -> None:
    starts = {"text": "Contract “acme", "markdown": "# Contract “acme", "html": "<!doctype html>"}
    for form, start in starts.items():
        result = ledger("contract", "explain", str(ACME), "--format", form)
        assert (result.exit_code, result.stderr) == (0, "") and result.stdout.startswith(start)
    file = tmp_path / "acme.html"
    result = ledger("contract", "explain", str(ACME), "--language", "zh", "--format", "html", "--output", str(file))
    assert (result.exit_code, result.stdout) == (0, "")
    assert '<html lang="zh-CN">' in file.read_text("utf-8") and "错误预算" in file.read_text("utf-8")
    assert set(LANGUAGES) == {"en", "zh"}


def test_a_bad_file_is_told_as_the_check_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(edited(QUIET, ["target: 300ms", "target: 300"]))
    explained, checked = (ledger("contract", command, str(file)) for command in ("explain", "check"))
    assert (explained.exit_code, explained.stdout) == (1, "")
    assert "error bad_duration" in explained.stderr and checked.stdout.startswith(explained.stderr)
