"""Chinese: the rules: latency, promise, prices, exemptions, outcomes, error budget and refunds."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from ledger.contract.expression import words_of
from ledger.contract.fact import Fact, FactCode, Facts, Written
from ledger.contract.scalar import parse_threshold
from ledger.documents.contract_prose.chinese.words import (
    LATE,
    LATENCIES,
    LATENCY_MEANINGS,
    MEASURES,
    OPERATIONS,
    STATUSES,
    UNITS,
    duration,
    names,
)
from ledger.documents.contract_prose.conditions import (
    is_alert_of_refunds_alone,
    is_budget_empty,
    is_nothing_tolerated,
    is_price_of_queue,
    is_standard_declared,
    is_unmeasured_outside,
)
from ledger.documents.contract_prose.figures import is_share, number_text, quoted, span_parts
from ledger.documents.contract_prose.prose import Say
from ledger.documents.number import grouped_count


def _latency_words(name: str) -> str:
    return LATENCIES.get(name) or f"合同自定义的延迟 {quoted(name)}"


def _default_latency(fact: Fact, facts: Facts) -> str:
    meaning = LATENCY_MEANINGS.get(fact["latency"])
    return f"除队列另有规定外，请求的延迟为{_latency_words(fact['latency'])}{f'，{meaning}' if meaning else ''}。"


def _definition(fact: Fact, facts: Facts) -> str:
    text = fact["definition"].text
    meanings = [OPERATIONS.get(word) or f"“{word}”为{MEASURES[word]}" for word in words_of(text)]
    return (
        f"合同自定义的延迟 {quoted(fact.subject[0])} 为 {quoted(text)}，其中{'；'.join(meanings)}。结果舍入至微秒，"
        "恰为一半的向最近的偶数舍入；所用的任一量未经计量、作为除数的量不大于零或者结果为负的，视为没有延迟数据。"
    )


def _promise(fact: Fact, facts: Facts) -> str:
    scope = {"model": "每个模型（各自单独考核）", "contract": "所有模型（合并考核）"}[fact["scope"]]
    percentile, target = number_text(fact["percentile"]), duration(fact["target"])
    unmeasured = "" if is_unmeasured_outside(facts) else "（包括没有延迟数据的）"
    return (
        f"服务承诺：在每个考核时段内，{scope}在考核范围内的请求至少有 {percentile}% 达到 {target}的延迟目标（P{percentile}，最近秩法，"
        f"即由快到慢排列时处于第 {percentile}% 位的请求的延迟）。"
        f"考核范围内的请求，未失败且延迟不超过 {target}的为达到目标；其余{unmeasured}均为逾时。"
        "不符合本承诺的考核时段为未达标时段。"
    )


def _window(fact: Fact, facts: Facts) -> str:
    window, cut = fact["window"], "合同版本更替之处，考核时段在此分为两段，各按其所属版本考核。"
    if window == "month":
        return f"考核时段为自然月。{cut}"
    if window == "1d":
        return f"考核时段为当地的一日，调整时钟之日短于或长于 24 小时。{cut}"
    return (
        f"每个考核时段长 {window[:-1]} {UNITS[window[-1]]}，自当日开始的午夜起依次计算，最后一个时段止于当日结束。"
        f"请求归属于网关收到该请求的时刻所在的时段；时段含起点，不含终点。{cut}"
    )


def _queues_judged(fact: Fact, facts: Facts) -> str:
    judged = fact["queues"].names
    others = [one.subject[0] for one in facts.every(FactCode.QUEUE) if one.subject[0] not in judged]
    outside = f"{_queue_words(others)}的请求不在考核范围内" if others else "没有队列在考核范围之外"
    return f"考核范围包括{_queue_words(judged)}的请求；{outside}；被豁免的请求一律不在考核范围内。"


def _small_windows(fact: Fact, facts: Facts) -> str:
    requests, window = number_text(fact["min_requests"]), facts.of(FactCode.WINDOW)["window"]
    small = f"考核范围内的请求少于 {requests} 个的考核时段为小样本时段；恰为 {requests} 个的不是。"
    if fact["small_windows"] == "evaluate":
        return small + "小样本时段照常考核。"
    if fact["small_windows"] == "skip":
        return small + "小样本时段不予考核，仅作为样本不足报告。"
    if window == "month":
        return small + "自然月无法合并，因此小样本时段不予考核，仅作为样本不足报告。"
    who = {"model": "、同一模型", "contract": ""}[facts.of(FactCode.PROMISE)["scope"]]
    return small + (
        f"同一当地日{who}的所有小样本时段，合计不少于 {requests} 个请求的，合并为一个止于当日结束的时段予以考核；未达标的，"
        f"计为一个未达标时段，且仅包含小样本时段的请求。合计少于 {requests} 个请求的，仅作为样本不足报告。"
    )


def _overload(fact: Fact, facts: Facts) -> str:
    if fact["max_requests"] is None:
        return "无论请求多少，考核时段均予考核。"
    most = number_text(fact["max_requests"])
    return f"考核范围内的请求多于 {most} 个的考核时段为过载时段：仅作报告，不予考核，也不与其他时段合并；恰为 {most} 个的仍予考核。"


def _span_words(text: str) -> str:
    sign, edges = span_parts(text)
    words = [duration(edge) for edge in edges]
    match sign:
        case "..":
            return f"为 {words[0]}至 {words[1]}（含两端）"
        case "..<":
            return f"为 {words[0]}（含）至 {words[1]}（不含）"
        case _:
            return f"{ {'<': '低于', '<=': '不超过', '>': '高于', '>=': '不低于'}[sign] } {words[0]}"


def _price(number: Written[Decimal], facts: Facts, queues: Iterable[str] | None = None) -> str:
    """What a request costs, in one of these queues or in any."""
    queue = "（未计队列的系数）" if is_price_of_queue(facts, queues) else ""
    return f"基准单价的 {number_text(number)}{queue or ' '}" if is_share(number) else f"基准单价的 {number_text(number)} 倍{queue}"


def _tier(fact: Fact, facts: Facts) -> str:
    return f"档位 {quoted(fact.subject[0])}：延迟{_span_words(fact['latency'].text)}的请求，按{_price(fact['multiplier'], facts)}计价。"


def _missing_latency(fact: Fact, facts: Facts) -> str:
    return f"成功但没有延迟数据的请求，按{_price(fact['multiplier'], facts)}计价，{LATE[fact['objective']]}。"


def _queue_of_request(fact: Fact, facts: Facts) -> str:
    standard = "“standard”" if is_standard_declared(facts) else "“standard”（合同没有该队列）"
    return (
        f"遥测数据未注明队列的请求，属于队列 {standard}。属于合同所没有的队列的请求，不会按零价计费：应予计费的，"
        "在更正之前不结算其所属月份。"
    )


def _queue(fact: Fact, facts: Facts) -> str:
    queue, of = quoted(fact.subject[0]), "档位、豁免或其他计价依据的系数"
    if fact["multiplier"] is None:
        price = f"队列 {queue} 不改变价格"
    elif fact["combine"] == "multiply":
        price = f"队列 {queue}：{of}乘以 {number_text(fact['multiplier'])}"
    else:
        price = f"队列 {queue}：{of}低于 {number_text(fact['multiplier'])} 的，提高至 {number_text(fact['multiplier'])}"
    if fact["max_queue"] is None:
        return f"{price}；排队等待时间没有上限。"
    longest = duration(fact["max_queue"])
    if fact["over_limit"] == "report":
        return f"{price}。排队等待超过 {longest}的请求计入服务水平报告，价格不变。"
    waits = f"{price}。排队等待超过 {longest}或者等待时间未知的请求"
    if fact["multiplier"] is None:
        return f"{waits}，价格不变，但在账单中单列一行；恰为 {longest}的不单列。"
    return f"{waits}，不再适用该队列的系数；恰为 {longest}的仍然适用。"


def _exemptions(fact: Fact, facts: Facts) -> str:
    count = fact["count"]
    if not count:
        return "没有豁免。"
    order = "" if count == 1 else "，依下列顺序以首个符合者为准"
    return f"共有 {count} 项豁免{order}。被豁免的请求不在考核范围内；如予计费，以豁免的系数代替档位的系数。"


def _circuit_breaker(fact: Fact, facts: Facts) -> str:
    queues = fact["queues"].names
    return (
        f"豁免 {fact['place']}，熔断：{_queue_words(queues)}的请求，无论结果如何，在其节点有熔断记录的期间内收到的，"
        f"予以豁免（记录或请求未注明节点的，视为相符）。如予计费，按{_price(fact['multiplier'], facts, queues)}计价。"
    )


def _async(fact: Fact, facts: Facts) -> str:
    limit = parse_threshold(fact["input_tokens"].text)
    words = {"<": "少于", "<=": "不多于", ">": "多于", ">=": "不少于"}
    compared = f"{words[limit.op]} {grouped_count(limit.tokens)}"
    evidence = "且响应带有标头 “X-Async-Processing: true” 的" if fact["evidence"] else "的（无需证据）"
    return (
        f"豁免 {fact['place']}，异步处理：成功或被客户端取消的请求，输入 Token（含缓存命中的）{compared} 个{evidence}，予以豁免。"
        f"如予计费，按{_price(fact['multiplier'], facts)}计价。"
    )


def _cold_start(fact: Fact, facts: Facts) -> str:
    limit, longest = number_text(fact["limit"]), duration(fact["max_duration"])
    starts = {"0": "前 0 次冷启动（即没有冷启动）", "1": "首次冷启动"}.get(limit, f"前 {limit} 次冷启动")
    earlier = "适用在先豁免的请求，不计入任何一次冷启动。" if fact["place"] > 1 else ""
    return (
        f"豁免 {fact['place']}，冷启动：每个当地日的{starts}，其成功或被客户端取消的请求，在该次冷启动的首个请求之后 "
        f"{longest}之内（恰为 {longest}的包括在内）收到的，予以豁免。注明同一冷启动的请求，"
        "或者在其节点上所用模型的同一次有记录的加载期间等待的请求，属于同一次冷启动；标明为冷启动而未注明是哪一次的请求，"
        f"自成一次冷启动。{earlier}被豁免的请求如予计费，按{_price(fact['multiplier'], facts)}计价。"
    )


def _success(fact: Fact, facts: Facts) -> str:
    unknown = "、没有延迟数据" if is_unmeasured_outside(facts) else ""
    return f"HTTP 状态码为 200–299 的请求为成功：予以计费；除被豁免、所在队列不在考核范围内{unknown}的以外，计入考核范围。"


def _failure(fact: Fact, facts: Facts) -> str:
    return f"{STATUSES[fact.subject[0]]}：一律不计费，{LATE[fact['objective']]}。"


def _cancelled(fact: Fact, facts: Facts) -> str:
    queue = "（两者均未计队列的系数）" if is_price_of_queue(facts) else ""
    waited = "没有延迟数据的，以端到端延迟代替；两者均无的，视为未超过目标。"
    billed = {
        "produced": f"按其输入 Token 及截至断开时已产生的输出 Token 计费：延迟超过目标的按其档位计价，否则按基准单价的 1 倍计价{queue}",
        "nothing": "不计费",
    }[fact["bill"]]
    return f"客户端主动断开的请求（HTTP 状态码 499）{billed}；{LATE[fact['objective']]}。{waited}"


def _budget(fact: Fact, facts: Facts) -> str:
    count = number_text(fact["breaches"])
    if is_budget_empty(facts):
        return f"未达标时段一律不予宽免：每个自然月的错误预算为 {count} 个时段，所有未达标时段均予返还。"
    if is_nothing_tolerated(facts):
        return (
            f"每个自然月的错误预算为 {count} 个未超出容限的未达标时段。没有任何未达标时段处于容限之内，因此均不予宽免，"
            "所有未达标时段均予返还。"
        )
    then = "，再按模型名称的顺序" if facts.of(FactCode.PROMISE)["scope"] == "model" else ""
    return (
        f"每个自然月内，未超出容限的未达标时段，按时段结束的先后（同时结束的，先开始者在先{then}）予以宽免，以 "
        f"{count} 个为限。此即错误预算，由当月所有模型和所有版本共用，每月初足额起算，余额不结转。"
    )


def _tolerance(fact: Fact, facts: Facts) -> str:
    percentile = number_text(facts.of(FactCode.PROMISE)["percentile"])
    limit = f"容限为延迟目标的 {number_text(fact['up_to'])}。"
    if is_budget_empty(facts):
        return f"{limit}未达标时段一律不予宽免，因此该容限不决定任何事项，仅用于在报告中注明超限时段。"
    if is_nothing_tolerated(facts):
        return f"{limit}未达标时段的 P{percentile} 均超过延迟目标，没有任何未达标时段处于容限之内，因此均不予宽免。"
    unmeasured = "失败的请求" if is_unmeasured_outside(facts) else "失败的或者没有延迟数据的请求"
    return f"{limit}P{percentile} 超过容限的未达标时段为超限时段：不予宽免，也不占用错误预算。{unmeasured}，视为超出任何容限。"


def _alert(fact: Fact, facts: Facts) -> str:
    share = number_text(fact["alert_at"])
    if is_alert_of_refunds_alone(facts):
        return f"发生任何返还时，应予预警；无论宽免多少个时段，均不会用到错误预算的 {share}。"
    return f"错误预算已用 {share}（向下取整，至少 1 个时段），或者发生任何返还时，应予预警。"


def _refund(fact: Fact, facts: Facts) -> str:
    whose = {"late_requests": "逾时的成功请求", "window": "全部成功请求（无论是否逾时）"}[fact["of"]]
    returned = f"按其考核范围内{whose}的 Token 数的 {number_text(fact['tokens'])} 倍向客户返还"
    return f"对每个未获宽免的未达标时段，{returned}。被客户端取消的请求不予返还。"


def _refund_value(fact: Fact, facts: Facts) -> str:
    if fact["valued_at"] == "base_rate":
        return "返还的 Token 按基准单价计价，不论其原先如何计费。"
    return "返还的 Token 按基准单价乘以其原先计费的系数计价。"


def _refund_failed(fact: Fact, facts: Facts) -> str:
    if fact["failed"] == "none":
        return "对失败的请求不予返还。"
    factor = number_text(facts.of(FactCode.REFUND)["tokens"])
    return (
        f"此外，对予以返还的时段内视为逾时的失败请求，按其输入 Token 数（含缓存命中的）的 {factor} 倍返还，均按未命中缓存的输入单价计价。"
    )


def _refund_tax(fact: Fact, facts: Facts) -> str:
    if fact["tax"] == "reduces_base":
        return "返还属于降价：冲减应税金额。"
    return "返还属于损害赔偿，不属于降价：不冲减应税金额。"


def _cap(fact: Fact, facts: Facts) -> str:
    if fact["cap"] is None:
        return "返还没有上限。"
    return f"每月返还以当月费用（不含补足最低消费的一行）的 {number_text(fact['cap'])} 为上限，超出部分另列一行扣回。"


def _queue_words(queues: Iterable[str]) -> str:
    return f"队列 {names(queues)} "


SENTENCES: Mapping[FactCode, Say] = {
    FactCode.DEFAULT_LATENCY: _default_latency,
    FactCode.QUEUE_LATENCY: lambda fact, _: f"队列 {quoted(fact.subject[0])} 的延迟为{_latency_words(fact['latency'])}。",
    FactCode.DEFINITION: _definition,
    FactCode.PROMISE: _promise,
    FactCode.WINDOW: _window,
    FactCode.QUEUES_JUDGED: _queues_judged,
    FactCode.SMALL_WINDOWS: _small_windows,
    FactCode.OVERLOAD: _overload,
    FactCode.TIER: _tier,
    FactCode.MISSING_LATENCY: _missing_latency,
    FactCode.QUEUE_OF_REQUEST: _queue_of_request,
    FactCode.QUEUE: _queue,
    FactCode.EXEMPTIONS: _exemptions,
    FactCode.CIRCUIT_BREAKER: _circuit_breaker,
    FactCode.ASYNC: _async,
    FactCode.COLD_START: _cold_start,
    FactCode.SUCCESS: _success,
    FactCode.FAILURE: _failure,
    FactCode.CANCELLED: _cancelled,
    FactCode.BUDGET: _budget,
    FactCode.TOLERANCE: _tolerance,
    FactCode.ALERT: _alert,
    FactCode.REFUND: _refund,
    FactCode.REFUND_VALUE: _refund_value,
    FactCode.REFUND_FAILED: _refund_failed,
    FactCode.REFUND_TAX: _refund_tax,
    FactCode.CAP: _cap,
}
