"""Chinese: the words of sections, choices and units, and how names and durations are written in a sentence."""

from collections.abc import Iterable

from ledger.contract.fact import Written
from ledger.documents.contract_prose.figures import duration_parts, quoted

HEADINGS = {
    **dict.fromkeys(("schema", "id", "version", "replaces", "title", "governing_text"), "合同"),
    "parties": "合同双方",
    "effective": "有效期",
    "calendar": "日历与结算",
    **dict.fromkeys(("money", "payment", "minimum_commitment"), "金额与付款"),
    "require_approvals": "批准",
    "models": "模型与单价",
    "latency": "延迟的计量",
    "objective": "服务承诺",
    "pricing": "按延迟计价",
    "queues": "队列",
    "exemptions": "豁免",
    "outcomes": "各类请求结果的计费与考核",
    "error_budget": "错误预算",
    "refund": "返还",
    "accept": "已确认的提示",
    "examples": "合同中的示例",
}
PREFACE = (
    "以下每一条均出自合同文件，并按文件的顺序排列。方括号内为文件所注明的、该条所依据的已签署协议的条款号。各条之下为算例，"
    "由实际结算所用的同一规则计算得出。"
)
LATENCIES = {
    "end_to_end": "端到端延迟",
    "inference": "推理时间",
    "first_token": "首 Token 延迟",
}
LATENCY_MEANINGS = {
    "end_to_end": "即自网关收到完整请求起，至网关取得最后一个 Token 止的时间",
    "inference": "即自请求首次被调度起，至最后一个 Token 止的时间，不含排队等待时间",
    "first_token": "即自网关收到完整请求起，至首个 Token 止的时间",
}
MEASURES = {
    "queue": "排队等待时间",
    "prefill": "自首次被调度至首个 Token 的时间",
    "decode": "自首个 Token 至最后一个 Token 的时间",
    "inference": "自首次被调度至最后一个 Token 的时间",
    "ttft": "首 Token 延迟",
    "e2e": "端到端延迟",
    "input_tokens": "输入 Token 数",
    "output_tokens": "输出 Token 数",
    "cached_input_tokens": "缓存命中的输入 Token 数",
}
OPERATIONS = {
    "if": "“if(a, b, c)”在 a 成立时取 b，否则取 c",
    "min": "“min”取其中最小者",
    "max": "“max”取其中最大者",
}
WARNINGS = {
    "target_inside_tier": "延迟目标落在某一档位之内",
    "last_token": "有档位的上限低于 1 秒，而延迟计至最后一个 Token",
    "alert_share": "没有任何未达标时段数恰好对应预警比例",
    "limit_16k": "16,000 与 16,384 个 Token 容易混淆",
    "template_value": "仍留有模板中的值",
    "template_money": "价格、税率与最低消费均与模板相同",
    "utc_calendar": "日历采用协调世界时，而有一方位于其他时区",
    "zone_without_place": "所用时区不属于任何地点",
    "text_cut_off": "有文本在注释中延续",
    "several_names": "一个名称中含有逗号",
    "no_cap": "返还没有上限",
    "base_rate_refund": "返还按基准单价计价",
    "cancelled_free": "客户端取消的请求不计费",
    "shedding_free": "因限流拒绝请求对服务承诺没有影响",
    "breaker_share": "熔断时间超过一个月的 5%",
    "single_late_breach": "仅一个逾时请求即可导致时段未达标",
    "unusable_budget": "可宽免的未达标时段数不少于一个月的时段数",
    "no_tolerance": "没有任何未达标时段处于容限之内",
    "max_below_min": "每个时段不是请求过少就是过载",
    "large_multiplier": "有系数高于 10",
    "slower_costs_more": "较慢的档位比较快的档位更贵",
    "until_last_day": "版本在某月最后一天之前终止",
    "short_term": "以日计的期限过短",
    "inference_latency": "延迟不包含排队等待时间",
    "low_percentile": "百分位低于 99",
    "no_clause": "有章节未注明条款号",
}
LATE = {
    "late": "计入考核范围，并视为逾时",
    "exclude": "不计入考核范围",
    "late_if_over_target": "其延迟超过目标的，计入考核范围并视为逾时，否则不计入考核范围",
}
STATUSES = {
    "server_error": "服务端错误（HTTP 状态码不属于 200–299 和 400–499）",
    "rate_limited": "被限流拒绝的请求（HTTP 状态码 429）",
    "client_error": "客户端错误（HTTP 状态码 400–499，429 和 499 除外）",
}
FIELDS = {"account": "账户", "model": "模型", "queue": "队列", "node": "节点", "cold_start": "冷启动"}
TIMES = {
    "queue_us": "排队等待时间",
    "prefill_us": "首次被调度至首个 Token",
    "decode_us": "首个 Token 至最后一个 Token",
    "inference_us": "推理时间",
    "ttft_us": "首 Token 延迟",
    "e2e_us": "端到端延迟",
}
TOKENS = {"input_tokens": "输入", "cached_input_tokens": "其中缓存命中", "output_tokens": "输出"}
UNITS = {"us": "微秒", "ms": "毫秒", "s": "秒", "m": "分钟", "h": "小时", "d": "天"}
KINDS = {"input": "输入", "cached_input": "缓存命中的输入", "output": "输出"}
BANDS = {
    "async": "异步处理豁免",
    "cold_start": "冷启动豁免",
    "circuit_breaker": "熔断豁免",
    "missing_latency": "无延迟数据",
    "cancelled": "目标时间内取消",
    "none": "不计费",
}
RESULTS = {
    "met": "达标",
    "forgiven": "未达标，予以宽免",
    "refunded": "未达标，予以返还",
    "insufficient": "请求过少，不予考核",
    "overload": "请求过多，不予考核",
}
IN_OBJECTIVE = {"met": "达到目标", "late": "逾时", "exclude": "不计入考核范围"}
INTERVALS = {"circuit_breaker": "熔断", "model_load": "模型加载"}
ROLES = {"provider": "服务方", "customer": "客户"}


def duration(given: Written[int] | int) -> str:
    """A duration as the file writes it: `300 毫秒`, `24 小时`."""
    number, unit = duration_parts(given)
    return f"{number} {UNITS[unit]}"


def and_list(words: list[str], last: str = "和") -> str:
    """`甲`, `甲 和 乙`, `甲、乙 和 丙`: they end in a name, a number or `Token`."""
    return words[0] if len(words) == 1 else f"{'、'.join(words[:-1])} {last} {words[-1]}"


def names(given: Iterable[str], last: str = "和") -> str:
    """Names in quotation marks, each once."""
    return and_list([quoted(name) for name in dict.fromkeys(given)], last)
