"""Chinese: what the contract says of itself, the parties, dates, money, models and examples."""

from collections.abc import Mapping, Sized
from datetime import timedelta
from typing import Any

from ledger.contract.fact import Fact, FactCode, Facts
from ledger.documents.contract_prose.chinese.words import (
    BANDS,
    FIELDS,
    IN_OBJECTIVE,
    INTERVALS,
    RESULTS,
    ROLES,
    TIMES,
    TOKENS,
    WARNINGS,
    and_list,
    duration,
    names,
)
from ledger.documents.contract_prose.figures import currency_of, number_text, quoted
from ledger.documents.contract_prose.prose import Say
from ledger.documents.number import grouped_count


def _governing_text(fact: Fact, facts: Facts) -> str:
    if fact["document"] is None:
        return "本文件未指明发生歧义时为准的已签署文本。"
    document, language, sha256 = (quoted(fact[name]) for name in ("document", "language", "sha256"))
    return f"如有歧义，以已签署文本为准：文件 {document}，语言 {language}，其 SHA-256 值为 {sha256}。"


def _party(fact: Fact, facts: Facts) -> str:
    role = fact.subject[0]
    series = "服务方的账单编号按该税号连续编排。" if role == "provider" else ""
    address = "、".join(map(quoted, fact["address"]))
    return f"{ROLES[role]}：{quoted(fact['name'])}，税号 {quoted(fact['tax_id'])}，地址 {address}。{series}"


def _accounts(fact: Fact, facts: Facts) -> str:
    return f"本合同适用于客户在网关的账户 {and_list([quoted(name) for name in fact['accounts']])} 的请求。"


def _effective(fact: Fact, facts: Facts) -> str:
    if fact["until"] is None:
        return f"本版本自 {fact['from']} 起生效，未定终止日：至另一个不替代任何版本的版本开始生效时为止。"
    last = fact["until"] - timedelta(days=1)
    return f"本版本自 {fact['from']} 起至 {last} 止有效，首尾两日均包含在内；自 {fact['until']} 起不再有效。"


def _corrections(fact: Fact, facts: Facts) -> str:
    more = "调整可以使客户多付。" if fact["may_charge_more"] else "调整不得使客户多付：合计会使客户多付的调整只作报告，不予收取。"
    return f"月末后 {duration(fact['within'])}之内获知的变动，在以后的账单中调整；此后获知的只作报告。{more}"


def _rounding(fact: Fact, facts: Facts) -> str:
    half = {"half_up": "恰为一半的，向远离零的方向舍入（四舍五入）", "half_even": "恰为一半的，向最近的偶数舍入（银行家舍入）"}
    return f"账单的每一行均先精确计算，再舍入一次；{half[fact['rounding']]}。合计为各行舍入后金额之和。"


def _tax(fact: Fact, facts: Facts) -> str:
    if fact["rate"] is None:
        return "不另计税。"
    return f"另按应税金额的 {number_text(fact['rate'])} 计收 {quoted(fact['name'])}，舍入一次。"


def _payment(fact: Fact, facts: Facts) -> str:
    if fact["due"] is None:
        return "合同未约定付款期限和收款信息。"
    return f"账单应自开具之日起 {duration(fact['due'])}内付清。收款信息：{quoted(fact['details'])}。"


def _minimum(fact: Fact, facts: Facts) -> str:
    if fact["minimum"] is None:
        return "没有最低消费。"
    minimum = f"{number_text(fact['minimum'])} {currency_of(facts)}"
    return f"每月最低消费为 {minimum}（未扣减返还、未计税），不足整月的也不按比例折算：费用不足的，另列一行补足。"


def _approvals(fact: Fact, facts: Facts) -> str:
    return f"本版本须经 {names(fact['roles'].names)} 批准。" if fact["roles"].names else "本文件不要求批准。"


def _rates(fact: Fact, facts: Facts) -> str:
    rates = {kind: number_text(fact[kind]) for kind in ("input", "cached_input", "output")}
    return (
        f"{quoted(fact.subject[0])} 的基准单价（{currency_of(facts)}，每 1,000,000 个 Token）：未命中缓存的输入 Token 为 "
        f"{rates['input']}，缓存命中的输入 Token 为 {rates['cached_input']}，输出 Token 为 {rates['output']}。"
    )


def _variant(fact: Fact, facts: Facts) -> str:
    model, variant = map(quoted, fact.subject)
    return (
        f"由 {variant}（{model} 的降级版本）服务的请求适用 {model} 的单价；其计价系数（含队列的系数）不超过 "
        f"{number_text(fact['max_multiplier'])}。"
    )


def _accepted(fact: Fact, facts: Facts) -> str:
    meaning = WARNINGS.get(fact["warning"])
    return f"已确认提示 {quoted(fact['warning'])}{f'（{meaning}）' if meaning else ''}，理由：{quoted(fact['reason'])}。"


def _field(name: str, value: Any) -> str:
    if name in FIELDS:
        return f"{FIELDS[name]} {quoted(value)}"
    if name in TIMES:
        return f"{TIMES[name]} {duration(value)}"
    if name in TOKENS:
        return f"{TOKENS[name]} {grouped_count(value)} 个 Token"
    match name:
        case "received_at":
            return f"收到时刻 {quoted(value.text)}"
        case "status":
            return f"HTTP 状态码 {value}"
        case _:
            return "带有异步处理标头" if value else "不带异步处理标头"


def _interval(interval: Mapping[str, Any]) -> str:
    where = [f"{word} {quoted(interval[name])}" for name, word in (("node", "节点"), ("model", "模型")) if interval[name] is not None]
    span = f"自 {interval['start'].text} 起至 {interval['end'].text} 前"
    return f"{span}{'、'.join(where)}有{INTERVALS[interval['kind']]}记录"


def _window(window: Mapping[str, Any], percentile: str) -> str:
    size = "" if window["requests"] is None else f"，请求数为 {grouped_count(window['requests'])}"
    return f"{quoted(window['at'].text)} 的考核时段，P{percentile} 为 {duration(window['p99'])}{size}"


def _in_turn(values: Sized) -> str:
    return "依次" if len(values) > 1 else ""


def _example(fact: Fact, facts: Facts) -> str:
    given = [_interval(interval) for interval in fact["intervals"]]
    given += [f"一个请求（{'，'.join(_field(name, value) for name, value in event.items())}）" for event in fact["events"]]
    percentile = number_text(facts.of(FactCode.PROMISE)["percentile"])
    given += [_window(one, percentile) for one in fact["windows"]]
    expected = []
    if fact["band"] is not None:
        bands = [BANDS.get(band) or quoted(band) for band in fact["band"]]
        expected.append(f"计价依据{_in_turn(bands)}为{'、'.join(bands)}")
    if fact["multiplier"] is not None:
        multipliers = ["无" if one is None else number_text(one) for one in fact["multiplier"]]
        expected.append(f"计价系数{_in_turn(multipliers)}为 {'、'.join(multipliers)}")
    if fact["objective"] is not None:
        expected.append(f"考核{_in_turn(fact['objective'])}为{'、'.join(IN_OBJECTIVE[one] for one in fact['objective'])}")
    if fact["charge"] is not None:
        expected.append(f"舍入前费用 {number_text(fact['charge'])} {currency_of(facts)}")
    if fact["results"] is not None:
        expected.append(f"结果{_in_turn(fact['results'])}为{'；'.join(RESULTS[result] for result in fact['results'])}")
    return f"{quoted(fact['it'])}：设有{'；'.join(given)}，则依合同：{'；'.join(expected)}。"


SENTENCES: Mapping[FactCode, Say] = {
    FactCode.SCHEMA: lambda fact, _: f"本文件采用合同语言 {quoted(fact['schema'])}。",
    FactCode.ID: lambda fact, _: f"本合同的编号为 {quoted(fact['id'])}。",
    FactCode.VERSION: lambda fact, _: f"本文件为合同的第 {fact['version']} 版。",
    FactCode.REPLACES: lambda fact, _: (
        "本版本不替代任何先前版本。"
        if fact["replaces"] is None
        else f"本版本替代第 {fact['replaces']} 版：在两者均涵盖的日期，视为该版本从未生效。"
    ),
    FactCode.TITLE: lambda fact, _: "合同没有标题。" if fact["title"] is None else f"合同标题为 {quoted(fact['title'])}。",
    FactCode.GOVERNING_TEXT: _governing_text,
    FactCode.PARTY: _party,
    FactCode.ACCOUNTS: _accounts,
    FactCode.EFFECTIVE: _effective,
    FactCode.TIMEZONE: lambda fact, _: f"日和月均按时区 {quoted(fact['timezone'])} 的当地时间计算。",
    FactCode.BILLING_PERIOD: lambda fact, _: (
        f"结算期为{ {'month': '自然月'}[fact['period']] }。请求归属于网关收到完整请求的时刻所在的日和月。"
    ),
    FactCode.GRACE: lambda fact, _: f"宽限期：每月最早于月末后 {duration(fact['grace'])}方可正式结算。",
    FactCode.CORRECTIONS: _corrections,
    FactCode.CURRENCY: lambda fact, _: f"币种为 {fact['currency']}，金额保留 {fact['digits']} 位小数。",
    FactCode.ROUNDING: _rounding,
    FactCode.TAX: _tax,
    FactCode.PAYMENT: _payment,
    FactCode.MINIMUM: _minimum,
    FactCode.APPROVALS: _approvals,
    FactCode.MODEL_OF_REQUEST: lambda fact, _: (
        "服务名称不属于合同任何模型的请求，不会按零价计费：应予计费或者计入考核范围的，在更正之前不结算其所属月份。"
    ),
    FactCode.SERVED_AS: lambda fact, _: (
        f"遥测数据所载服务名称为 {names(fact['names'].names, '或')} 的请求，即为对模型 {quoted(fact.subject[0])} 的请求。"
    ),
    FactCode.RATES: _rates,
    FactCode.VARIANT: _variant,
    FactCode.ACCEPTS: lambda fact, _: (
        f"本文件确认了检查所给出的 {fact['count']} 项提示，表明已阅且确系本意。" if fact["count"] else "本文件未确认任何提示。"
    ),
    FactCode.ACCEPTED: _accepted,
    FactCode.EXAMPLES: lambda fact, _: f"合同载有 {fact['count']} 个示例。" if fact["count"] else "合同未载示例。",
    FactCode.EXAMPLE: _example,
}
