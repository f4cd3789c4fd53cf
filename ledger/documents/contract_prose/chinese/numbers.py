"""Chinese: how worked numbers are said."""

from collections.abc import Callable, Mapping
from typing import Any

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.documents.contract_prose.chinese.words import KINDS, and_list, duration
from ledger.documents.contract_prose.conditions import is_price_of_queue
from ledger.documents.contract_prose.figures import currency_of, exact_text, grouped_rate, money_text, quoted, sum_text
from ledger.documents.contract_prose.illustration import (
    Alert,
    AsyncCases,
    BreakerCases,
    Capped,
    ColdStartCases,
    Credit,
    Edge,
    Illustration,
    Instants,
    Judged,
    Measured,
    Priced,
    Rounded,
    Taxed,
    Tolerance,
    Tolerated,
    TrueUp,
    Verdicts,
    Waits,
)
from ledger.documents.number import grouped_amount, grouped_count


def _tokens(counts: Mapping[str, int]) -> str:
    return and_list([f"{grouped_count(count)} 个{KINDS[kind]} Token" for kind, count in counts.items()])


def _exempt(is_exempt: bool) -> str:
    return "予以豁免" if is_exempt else "不予豁免"


def _instants(one: Instants, fact: Fact, facts: Facts) -> str:
    until = f"；其后的第一个时刻为 {quoted(one.end.isoformat())}" if one.end else ""
    return f"本版本的第一个时刻为 {quoted(one.first.isoformat())}{until}。"


def _rounded(one: Rounded, fact: Fact, facts: Facts) -> str:
    digits = facts.of(FactCode.CURRENCY)["digits"]
    pairs = [f"{exact_text(exact)} 舍入为 {grouped_amount(minor, digits)}" for exact, minor in one.amounts]
    return f"以 {currency_of(facts)} 计：{'，'.join(pairs)}。"


def _taxed(one: Taxed, fact: Fact, facts: Facts) -> str:
    refunds = f"、返还 {money_text(-one.credits, facts)}" if one.credits else ""
    tax, total = money_text(one.tax, facts), money_text(one.total, facts)
    return f"费用 {money_text(one.charges, facts)}{refunds}，税额为 {tax}，合计 {total}。"


def _true_up(one: TrueUp, fact: Fact, facts: Facts) -> str:
    charges, line, lifted = (money_text(minor, facts) for minor in (one.charges, one.true_up, one.charges + one.true_up))
    return f"费用为 {charges} 的，另列一行 {line} 补足至 {lifted}。"


def _measured(one: Measured, fact: Fact, facts: Facts) -> str:
    latency = "没有延迟数据" if one.latency_us is None else f"其延迟为 {duration(one.latency_us)}"
    return (
        f"某请求排队等待 {duration(one.queue_us)}，此后经 {duration(one.prefill_us)}产生首个 Token，再经 "
        f"{duration(one.decode_us)}产生最后一个 Token：{latency}。"
    )


def _tolerated(one: Tolerated, fact: Fact, facts: Facts) -> str:
    may = f"至多可有 {grouped_count(one.tolerated)} 个逾时" if one.tolerated else "不得有任何一个逾时"
    return f"某考核时段有 {grouped_count(one.requests)} 个请求：{may}；有 {grouped_count(one.tolerated + 1)} 个逾时的，该时段未达标。"


def _edge(one: Edge, fact: Fact, facts: Facts) -> str:
    late = {True: "为逾时", False: "达到目标"}
    exactly = ("恰为", "为") if one.is_written_below else ("为", "恰为")
    return (
        f"延迟{exactly[0]} {duration(one.below_us)}的属于档位 {quoted(one.below_tier)}，{late[one.below_late]}；{exactly[1]} "
        f"{duration(one.above_us)}的属于档位 {quoted(one.above_tier)}，{late[one.above_late]}。"
    )


def _priced(one: Priced, fact: Fact, facts: Facts) -> str:
    tokens, charge = _tokens({kind: count for kind, count, _ in one.charge.tokens}), one.charge
    instead = ""
    if charge.multiplier != one.tier_multiplier:
        instead = f"，系数为 {exact_text(charge.multiplier)} 而非 {exact_text(one.tier_multiplier)}"
    queue = "" if one.is_in_queue or not is_price_of_queue(facts) else "（未计队列的系数）"
    return f"某请求有 {tokens}，延迟 {duration(one.latency_us)}，属于档位 {quoted(one.tier)}{instead}：{sum_text(charge, facts)}{queue}。"


def _waits(one: Waits, fact: Fact, facts: Facts) -> str:
    return (
        f"在档位 {quoted(one.tier)}：排队等待恰为 {duration(fact['max_queue'])}的，系数为 {exact_text(one.within)}；等待 "
        f"{duration(one.longest_us + 1)}的，为 {exact_text(one.beyond)}；等待时间未知的，为 {exact_text(one.unknown)}。"
    )


def _async_cases(one: AsyncCases, fact: Fact, facts: Facts) -> str:
    needs_header = not all(header for _, header, _ in one.cases)
    told = []
    for tokens, header, is_exempt in one.cases:
        evidence = "" if not needs_header else "且带有标头" if header else "但不带标头"
        told.append(f"有 {grouped_count(tokens)} 个输入 Token {evidence}的{_exempt(is_exempt)}")
    return f"此类请求中，{'；'.join(told)}。"


def _breaker_cases(one: BreakerCases, fact: Fact, facts: Facts) -> str:
    moments = ("于熔断开始的时刻", "于熔断结束前 1 微秒", "于熔断结束的时刻")
    told = [f"{moment}收到的{_exempt(is_exempt)}" for moment, is_exempt in zip(moments, one.exempt, strict=True)]
    return f"此类请求中，{'；'.join(told)}。"


def _cold_start_cases(one: ColdStartCases, fact: Fact, facts: Facts) -> str:
    (_, at_limit), (beyond_us, beyond) = one.apart
    starts, exempt = one.of_day
    return (
        f"同一次冷启动中，首个请求之后 {duration(fact['max_duration'])}收到的请求{_exempt(at_limit == 2)}，之后 "
        f"{duration(beyond_us)}收到的{_exempt(beyond == 2)}。同一日有 {starts} 次冷启动的，其中 {exempt} 次予以豁免。"
    )


def _judged(one: Judged, fact: Fact, facts: Facts) -> str:
    latency = "" if one.latency_us is None else f"，延迟 {duration(one.latency_us)}"
    judged = "计入考核范围，为逾时" if one.late else "计入考核范围，不为逾时" if one.in_objective else "不计入考核范围"
    billed = "不计费" if one.charge is None else f"计费 {sum_text(one.charge, facts)}"
    queue = "" if one.queue is None else f"队列 {quoted(one.queue)} 中，"
    return f"{queue}状态码 {one.status}{latency}：{billed}；{judged}。"


def _tolerance(one: Tolerance, fact: Fact, facts: Facts) -> str:
    limit, beyond = ("超出容限" if is_over else "未超出容限" for is_over in (one.limit_over, one.beyond_over))
    return f"延迟恰为 {duration(one.limit_us)}的{limit}；为 {duration(one.limit_us + 1)}的{beyond}。"


def _verdicts(one: Verdicts, fact: Fact, facts: Facts) -> str:
    told = [f"第 {place} 个{'予以宽免' if is_forgiven else '触发返还'}" for place, is_forgiven in enumerate(one.within, 1)]
    over = "予以宽免" if one.is_over_forgiven else "予以返还"
    return f"某月未超出容限的未达标时段：{'，'.join(told)}。超出容限的时段，即使是当月第 1 个，也{over}。"


def _alert(one: Alert, fact: Fact, facts: Facts) -> str:
    return f"已宽免 {grouped_count(one.used)} 个时段时，应予预警。"


def _credit(one: Credit, fact: Fact, facts: Facts) -> str:
    lines, counts = [], {}
    for line in one.lines:
        assert line.rate is not None and line.multiplier is not None and line.token is not None
        count = counts[line.token] = one.tokens[line.token]
        price = f"{grouped_rate(line.rate)} ÷ 1,000,000 × {exact_text(line.multiplier)}"
        amount = money_text(line.amount_minor, facts)
        lines.append(f"{KINDS[line.token]} Token {one.factor} × {grouped_count(count)} × {price}，一行 {amount}")
    queue = "" if one.queue is None else f"队列 {quoted(one.queue)} 中"
    given = f"{queue}失败的请求有 {_tokens(counts)}"
    if one.latency_us is not None:
        given = f"{queue}延迟 {duration(one.latency_us)}的请求有 {_tokens(counts)}，已计费 {money_text(one.charged, facts)}"
    return f"在予以返还的时段内，{given}，返还：{'；'.join(lines)}。"


def _capped(one: Capped, fact: Fact, facts: Facts) -> str:
    back, remain = money_text(one.taken_back, facts), money_text(-one.credits - one.taken_back, facts)
    return f"费用 {money_text(one.charges, facts)}、返还 {money_text(-one.credits, facts)} 的，依上限扣回 {back}，实际返还 {remain}。"


ILLUSTRATIONS: Mapping[type[Illustration], Callable[[Any, Fact, Facts], str]] = {
    Instants: _instants,
    Rounded: _rounded,
    Taxed: _taxed,
    TrueUp: _true_up,
    Measured: _measured,
    Tolerated: _tolerated,
    Edge: _edge,
    Priced: _priced,
    Waits: _waits,
    AsyncCases: _async_cases,
    ColdStartCases: _cold_start_cases,
    BreakerCases: _breaker_cases,
    Judged: _judged,
    Tolerance: _tolerance,
    Verdicts: _verdicts,
    Alert: _alert,
    Credit: _credit,
    Capped: _capped,
}
