"""Each warning about a choice names the other one, as a contract to which the warning does not apply."""

import pytest

from ledger.contract.alternative import alternatives
from ledger.contract.lint import lint

from .golden import read

TO_16K = ("> 20000", "> 16000")


@pytest.mark.parametrize(
    ("code", "edit", "value"),
    [
        ("base_rate_refund", ("valued_at: charged_rate", "valued_at: base_rate"), "charged_rate"),
        ("no_cap", ("cap: 100%", "cap: none"), "100%"),
        ("cancelled_free", ("bill: produced", "bill: nothing"), "produced"),
        ("shedding_free", ("rate_limited: {objective: late}", "rate_limited: {objective: exclude}"), "late"),
        ("low_percentile", ("percentile: 99", "percentile: 95"), "99"),
        ("last_token", ("default: first_token", "default: end_to_end"), "first_token"),
        ("last_token", ("by_queue: {batch: first_token}", "by_queue: {batch: hybrid}"), "first_token"),
        ("inference_latency", ("default: first_token", "default: inference"), "end_to_end"),
        ("inference_latency", ("by_queue: {batch: first_token}", "by_queue: {standard: inference}"), "end_to_end"),
    ],
)
def test_the_other_choice_of_a_warning_is_a_contract_without_it(code: str, edit: tuple[str, str], value: str) -> None:
    [found] = [one for one in alternatives(read(*edit)) if one.finding.code == code]
    assert found.value == value
    assert (code, found.finding.path) not in {(finding.code, finding.path) for finding in lint(found.contract)}


@pytest.mark.parametrize(("written", "other"), [("16000", 16384), ("16384", 16000)])
def test_the_other_choice_of_16k_is_the_other_number(written: str, other: int) -> None:
    [found] = alternatives(read(TO_16K[0], f"> {written}"))
    assert (found.value, found.contract.exemptions[1]) == (
        f"> {other}",
        read(TO_16K[0], f"> {other}").exemptions[1],
    )


def test_an_accepted_warning_and_one_without_another_choice_have_none() -> None:
    assert alternatives(read("cap: 100%", "cap: none", "accept: []", "accept: [{code: no_cap, reason: meant}]")) == ()
    assert alternatives(read("alert_at: 100%", "alert_at: 80%")) == ()
