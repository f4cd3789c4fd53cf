"""Single sentences about a contract, by value, where what one section says depends on another or on an edge."""

import pytest

from ledger.contract.fact import FactCode, Facts
from ledger.contract.facts import facts_of
from ledger.contract.reader import contract_texts
from ledger.documents.contract_prose.languages import LANGUAGES
from tests.contract.golden import QUIET, edited, read

NO_MULTIPLIER = ("multiplier: 3.0, combine: multiply, ", "")
NEUTRAL = ("multiplier: 3.0", "multiplier: 1.0")


def said(code: FactCode, *edit: str, subject: tuple[str, ...] = (), language: str = "en") -> str:
    facts = Facts(facts_of(read(*edit), contract_texts(edited(QUIET, list(edit)).encode())))
    return LANGUAGES[language].sentences[code](facts.of(code, *subject), facts)


@pytest.mark.parametrize(
    ("code", "subject", "english", "chinese"),
    [
        (FactCode.TIER, ("slow",), "costs 30% of the base rates", "按基准单价的 30%"),
        (FactCode.MISSING_LATENCY, (), "costs 1.0 times the base rates", "按基准单价的 1.0 倍"),
        (FactCode.ASYNC, ("1",), "it costs 1.0 times the base rates", "按基准单价的 1.0 倍"),
        (FactCode.COLD_START, ("1",), "it costs 1.0 times the base rates", "按基准单价的 1.0 倍"),
    ],
    ids=lambda value: value.value if isinstance(value, FactCode) else None,
)
def test_a_price_is_said_to_be_before_the_multiplier_of_a_queue_where_a_queue_has_one(
    code: FactCode, subject: tuple[str, ...], english: str, chinese: str
) -> None:
    before = f"{english}, before the multiplier of its queue"
    assert before in said(code, subject=subject) and f"{chinese}（未计队列的系数）" in said(code, subject=subject, language="zh")
    for edit in (NO_MULTIPLIER, NEUTRAL):
        assert english in said(code, *edit, subject=subject) and before not in said(code, *edit, subject=subject)
        assert chinese in said(code, *edit, subject=subject, language="zh")
        assert "未计" not in said(code, *edit, subject=subject, language="zh")


def test_the_price_while_a_breaker_is_open_depends_on_the_queues_that_it_is_for() -> None:
    batch, vip = (said(FactCode.CIRCUIT_BREAKER, "queues: [batch]", f"queues: [{queue}]", subject=("1",)) for queue in ("batch", "vip"))
    assert batch.endswith("it costs 1.0 times the base rates.")
    assert vip.endswith("it costs 1.0 times the base rates, before the multiplier of its queue.")


@pytest.mark.parametrize(
    ("code", "edit", "english", "chinese"),
    [
        (
            FactCode.BUDGET,
            ["breaches: 3", "breaches: 0"],
            "No breach is forgiven: the error budget of a calendar month is 0 breaches, and every breach is refunded.",
            "未达标时段一律不予宽免：每个自然月的错误预算为 0 个时段，所有未达标时段均予返还。",
        ),
        (
            FactCode.TOLERANCE,
            ["breaches: 3", "breaches: 0"],
            "The tolerance is 120% of the target. Since no breach is forgiven, it decides nothing; reports only name the breaches that are "
            "beyond it.",
            "容限为延迟目标的 120%。未达标时段一律不予宽免，因此该容限不决定任何事项，仅用于在报告中注明超限时段。",
        ),
        (
            FactCode.ALERT,
            ["breaches: 3", "breaches: 0"],
            "An alert is due when anything is refunded; no number of forgiven breaches uses 100% of the error budget.",
            "发生任何返还时，应予预警；无论宽免多少个时段，均不会用到错误预算的 100%。",
        ),
        (
            FactCode.ALERT,
            ["alert_at: 100%", "alert_at: 134%"],
            "An alert is due when anything is refunded; no number of forgiven breaches uses 134% of the error budget.",
            "发生任何返还时，应予预警；无论宽免多少个时段，均不会用到错误预算的 134%。",
        ),
        (
            FactCode.BUDGET,
            ["up_to: 120%", "up_to: 100%"],
            "The error budget of a calendar month is 3 breaches within the tolerance. No breach lies within it, so that none is forgiven, "
            "and every breach is refunded.",
            "每个自然月的错误预算为 3 个未超出容限的未达标时段。没有任何未达标时段处于容限之内，因此均不予宽免，所有未达标时段均予返还。",
        ),
        (
            FactCode.TOLERANCE,
            ["up_to: 120%", "up_to: 100%"],
            "The tolerance is 100% of the target. A breach is a window whose P99 is above the target, so that none lies within the "
            "tolerance: no breach is forgiven.",
            "容限为延迟目标的 100%。未达标时段的 P99 均超过延迟目标，没有任何未达标时段处于容限之内，因此均不予宽免。",
        ),
        (
            FactCode.SMALL_WINDOWS,
            [],
            "A window with fewer than 100 requests in the objective is small; with exactly 100 it is not. All small windows of a model on "
            "one local day are judged as one window, which ends with the day, if together they have at least 100 requests; if it is a "
            "breach, it counts as one breach, and only their requests belong to it. With fewer requests they are only reported as "
            "insufficient.",
            "考核范围内的请求少于 100 个的考核时段为小样本时段；恰为 100 个的不是。同一当地日、同一模型的所有小样本时段，合计不少于 "
            "100 个请求的，合并为一个止于当日结束的时段予以考核；未达标的，计为一个未达标时段，且仅包含小样本时段的请求。"
            "合计少于 100 个请求的，仅作为样本不足报告。",
        ),
        (
            FactCode.QUEUE_OF_REQUEST,
            [],
            "A request for which the telemetry names no queue is in the queue “standard”. A request in a queue that the contract does not "
            "have is not billed at zero: if it would be billed, its month is not settled until that is corrected.",
            "遥测数据未注明队列的请求，属于队列 “standard”。属于合同所没有的队列的请求，不会按零价计费：应予计费的，"
            "在更正之前不结算其所属月份。",
        ),
    ],
)
def test_what_a_lawyer_would_ask_is_said(code: FactCode, edit: list[str], english: str, chinese: str) -> None:
    assert (said(code, *edit), said(code, *edit, language="zh")) == (english, chinese)


def test_a_contract_without_the_standard_queue_says_so() -> None:
    edit = ("  standard: {}\n", "", "queues: [standard, vip]", "queues: [vip]")
    assert "the queue “standard”, which the contract does not have." in said(FactCode.QUEUE_OF_REQUEST, *edit)
    assert "队列 “standard”（合同没有该队列）。" in said(FactCode.QUEUE_OF_REQUEST, *edit, language="zh")


def test_a_queue_without_a_multiplier_cannot_lose_it() -> None:
    told = said(FactCode.QUEUE, *NO_MULTIPLIER, subject=("vip",))
    assert "multiplier" not in told and told.endswith(
        "stands on an invoice line of its own, at the same price; after exactly 500 ms it does not."
    )


def test_lists_stand_in_the_order_of_the_file() -> None:
    assert "in the queues “vip” and “standard”" in said(FactCode.QUEUES_JUDGED, "queues: [standard, vip]", "queues: [vip, standard]")
    assert "队列 “vip” 和 “standard” " in said(FactCode.QUEUES_JUDGED, "queues: [standard, vip]", "queues: [vip, standard]", language="zh")
    error, limited = "  server_error: {objective: late}\n", "  rate_limited: {objective: late}\n"
    edit = (error, "", limited, limited + error)
    told = [
        fact.subject[0]
        for fact in facts_of(read(*edit), contract_texts(edited(QUIET, list(edit)).encode()))
        if fact.code is FactCode.FAILURE
    ]
    assert told == ["rate_limited", "server_error", "client_error"]
