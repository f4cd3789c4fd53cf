"""The words of a replayed month, by language: headings, rows, verdicts and notes. Names and numbers are the same in all."""

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.documents.local_time import CHINESE as CHINESE_WINDOWS
from ledger.documents.local_time import ENGLISH as ENGLISH_WINDOWS
from ledger.documents.local_time import WindowWords


@dataclass(frozen=True, slots=True)
class ReplayNote:
    """What a reader of the figures must know: the word `note_...` that says it, and what the word leaves open."""

    word: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplayWords:
    """A language: its words by name, and how it writes windows."""

    texts: Mapping[str, str]
    window: WindowWords

    def __getitem__(self, name: str) -> str:
        return self.texts[name]


def note_text(note: ReplayNote, words: ReplayWords) -> str:
    """The note in a language."""
    return words[note.word].format(**note.values)


_ENGLISH = {
    "title": "What the requests of {month} would have cost, in {currency}",
    "equal": "Lines that are equal: {count}, together {amount}.",
    "money": "Amounts",
    "level": "Service level",
    "lines": "Lines that differ",
    "breaches": "Windows with another result",
    "before": "before",
    "after": "after",
    "difference": "difference",
    "queue": "queue",
    "token": "token",
    "tokens_before": "tokens before",
    "tokens_after": "tokens after",
    "window": "window",
    "scope": "scope",
    "charges": "charges",
    "true_up": "true-up",
    "credits": "refunds",
    "net": "net",
    "tax": "tax",
    "total": "total",
    "billed": "billed requests",
    "missing_latency": "of them without a latency",
    "late": "late requests",
    "judged": "windows judged",
    "breached": "breaches",
    "insufficient": "windows with too few requests",
    "overload": "windows with too many requests",
    "allowed": "error budget",
    "used": "breaches forgiven",
    "refunded": "breaches refunded",
    "verdict_forgiven": "forgiven",
    "verdict_refunded": "refunded",
    "over": "beyond the tolerance",
    "none": "-",
    "comma": ", ",
    "forfeited": "forfeited",
    "all_models": "all models",
    "band_circuit_breaker": "circuit breaker",
    "band_async": "asynchronous",
    "band_cold_start": "cold start",
    "band_missing_latency": "without a latency",
    "band_cancelled": "cancelled in time",
    "band_refund": "at the base rates",
    "band_failed": "failed requests",
    "token_input": "input",
    "token_cached_input": "cached input",
    "token_output": "output",
    "pooled": "pooled",
    "line_usage": "",
    "line_true_up": "true-up",
    "line_credit": "refund: ",
    "line_cap": "cap",
    "line_adjustment": "adjustment",
    "note_from": "{name} applies from {first}; it is replayed as if it applied in all of {month}",
    "note_span": "{name} applies from {first} up to and including {last}; it is replayed as if it applied in all of {month}",
    "note_only": "only {name} covers the requests of {account}",
    "note_zones": "{month} is the month of {zone} in {name} and that of {other_zone} in {other_name}",
    "note_running": "{month} is not over: only windows that have ended are judged",
}
_CHINESE = {
    "title": "按两份合同分别结算 {month} 的请求（单位：{currency}）",
    "equal": "相同的行：{count} 行，合计 {amount}。",
    "money": "金额",
    "level": "服务水平",
    "lines": "不同的行",
    "breaches": "结果不同的考核时段",
    "before": "变更前",
    "after": "变更后",
    "difference": "差额",
    "queue": "队列",
    "token": "Token",
    "tokens_before": "变更前 Token 数",
    "tokens_after": "变更后 Token 数",
    "window": "考核时段",
    "scope": "考核对象",
    "charges": "费用",
    "true_up": "最低消费补足",
    "credits": "返还",
    "net": "净额",
    "tax": "税额",
    "total": "合计",
    "billed": "计费请求数",
    "missing_latency": "其中无延迟数据",
    "late": "逾时请求数",
    "judged": "考核时段数",
    "breached": "未达标时段数",
    "insufficient": "样本不足的考核时段数",
    "overload": "过载时段数",
    "allowed": "错误预算",
    "used": "宽免的未达标时段数",
    "refunded": "返还的未达标时段数",
    "verdict_forgiven": "宽免",
    "verdict_refunded": "返还",
    "over": "超限",
    "none": "-",
    "comma": "，",
    "forfeited": "不适用队列的系数",
    "all_models": "所有模型",
    "band_circuit_breaker": "熔断豁免",
    "band_async": "异步处理豁免",
    "band_cold_start": "冷启动豁免",
    "band_missing_latency": "无延迟数据",
    "band_cancelled": "目标时间内取消",
    "band_refund": "按基准单价",
    "band_failed": "失败的请求",
    "token_input": "输入",
    "token_cached_input": "缓存命中的输入",
    "token_output": "输出",
    "pooled": "合并考核",
    "line_usage": "",
    "line_true_up": "最低消费补足",
    "line_credit": "返还：",
    "line_cap": "上限",
    "line_adjustment": "调整",
    "note_from": "{name} 自 {first} 起生效；重算时视为在 {month} 全月有效",
    "note_span": "{name} 自 {first} 起至 {last} 止有效；重算时视为在 {month} 全月有效",
    "note_only": "只有 {name} 适用于账户 {account} 的请求",
    "note_zones": "{month} 在 {name} 中为时区 {zone} 的月份，在 {other_name} 中为时区 {other_zone} 的月份",
    "note_running": "{month} 尚未结束：仅考核已结束的时段",
}
ENGLISH = ReplayWords(_ENGLISH, ENGLISH_WINDOWS)
CHINESE = ReplayWords(_CHINESE, CHINESE_WINDOWS)
WORDS = {"en": ENGLISH, "zh": CHINESE}
