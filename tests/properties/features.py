"""Which rules a settled random month really met, by name, so that nobody has to believe that the strategies reach them.

Takes a month and its settlement; gives names for hypothesis's `event()`. `pytest --hypothesis-show-statistics` prints how often each comes.
"""

from typing import Any

from tests.properties.generate import Month


def features_of(month: Month, settlement: dict[str, Any]) -> list[str]:
    """The names of the rules met, sorted."""
    lines, windows, events = settlement["lines"], settlement["windows"], settlement["events"]
    breaches = windows["breaches"]
    usage = [line for line in lines if line["kind"] == "usage"]
    credit = [line for line in lines if line["kind"] == "credit"]
    versions = month.contracts
    met = {
        "breach forgiven": any(breach["result"] == "forgiven" for breach in breaches),
        "breach refunded": any(breach["result"] == "refunded" for breach in breaches),
        "breach refunded though not over: budget spent": any(b["result"] == "refunded" and not b["over"] for b in breaches),
        "both forgiven and refunded": len({breach["result"] for breach in breaches}) == 2,
        "breach over": any(breach["over"] for breach in breaches),
        "breach of a pool": any(breach.get("pooled") for breach in breaches),
        "breach without a number": any(breach["p99_us"] is None for breach in breaches),
        "breaches with one end": len({breach["end"] for breach in breaches}) < len(breaches),
        "windows judged, none breached": windows["judged"] > 0 and not breaches,
        "insufficient": windows["insufficient"] > 0,
        "overload": windows["overload"] > 0,
        "credit at base rate": any(line["band"] == "refund" for line in credit),
        "credit at charged rate": any(line["band"] not in ("refund", "failed") for line in credit),
        "credit of failed inputs": any(line["band"] == "failed" for line in credit),
        "cap": any(line["kind"] == "cap" for line in lines),
        "true-up": any(line["kind"] == "true_up" for line in lines),
        "total below zero": settlement["totals"]["total"].startswith("-"),
        "no line at all": not lines,
        "usage of two versions": len({line["version"] for line in usage}) > 1,
        "usage of a variant": any(line["variant"] for line in usage),
        "usage forfeited": any(line["forfeited"] for line in usage),
        "usage cancelled": any(line["band"] == "cancelled" for line in usage),
        "usage without latency": any(line["band"] == "missing_latency" for line in usage),
        **{f"exempt {kind}": count > 0 for kind, count in events["exempt"].items()},
        **{f"outcome {outcome}": count > 0 for outcome, count in events["outcomes"].items()},
        "a model nobody claims": any(row["model"] == "no-such-model" for row in month.events),
        "a model load": any(row["kind"] == "model_load" for row in month.intervals),
        "events outside the contract": len(month.events) > events["total"],
        "a definition": any("define" in version["latency"] for version in versions),
        "a kind of exemption twice": any(
            len({rule["kind"] for rule in version["exemptions"]}) < len(version["exemptions"]) for version in versions
        ),
        f"versions {len(versions)}": True,
        "a version replaced": any("replaces" in version for version in versions),
        f"currency {settlement['currency']}": True,
        f"zone {settlement['timezone']} {month.period}": True,
        **{f"window {version['objective']['window']}": True for version in versions},
        **{f"scope {version['objective']['scope']}": True for version in versions},
        **{f"small windows {version['objective']['small_windows']}": True for version in versions},
    }
    return sorted(name for name, is_met in met.items() if is_met)
