"""Random latency definitions from the grammar of the specification, section 3: texts whose value is a duration."""

from hypothesis import strategies as st

DURATIONS = ("e2e", "inference", "queue", "prefill", "decode", "ttft")
COUNTS = ("output_tokens", "input_tokens", "cached_input_tokens")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

duration_literals = st.sampled_from(("0ms", "1us", "50ms", "0.1s", "300ms", "2s"))
number_literals = st.sampled_from(("0.30", "0.5", "1.5", "2", "1", "0.333333", "10"))
comparison_signs = st.sampled_from(COMPARISONS)


def durations(depth: int) -> st.SearchStrategy[str]:
    """Expressions that are durations."""
    names = st.sampled_from(DURATIONS)
    if depth == 0:
        return names
    smaller = durations(depth - 1)
    return st.one_of(
        names,
        st.builds("{} + {}".format, smaller, smaller),
        st.builds("{} - ({})".format, smaller, smaller),
        st.builds("{} - {}".format, names, duration_literals),
        st.builds("({}) * {}".format, smaller, number_literals),
        st.builds("{} * {}".format, number_literals, names),
        st.builds("({}) / {}".format, smaller, st.sampled_from(("2", "3", "4", "0.8"))),
        st.builds("{} * 10us".format, st.sampled_from(COUNTS)),
        st.builds("min({}, {})".format, smaller, st.one_of(smaller, duration_literals)),
        st.builds("max({}, {}, {})".format, smaller, names, duration_literals),
        st.builds("if({}, {}, {})".format, conditions(depth - 1), smaller, smaller),
    )


def conditions(depth: int) -> st.SearchStrategy[str]:
    """Comparisons, of ratios too, and what `and`, `or`, `not` make of them."""
    smaller = durations(depth)
    divisors = st.one_of(st.sampled_from(DURATIONS), st.builds("({} - {})".format, st.sampled_from(DURATIONS), st.sampled_from(DURATIONS)))
    plain = st.one_of(
        st.builds("{} / {} {} {}".format, st.sampled_from(DURATIONS), divisors, comparison_signs, number_literals),
        st.builds("{} {} {} / {}".format, number_literals, comparison_signs, st.sampled_from(DURATIONS), divisors),
        st.builds("decode / {} {} {}".format, st.sampled_from(COUNTS), comparison_signs, st.sampled_from(("20us", "1ms"))),
        st.builds("{} {} {}".format, smaller, comparison_signs, duration_literals),
        st.builds("{} {} {}".format, smaller, comparison_signs, smaller),
        st.builds("{} {} 1000".format, st.sampled_from(COUNTS), comparison_signs),
    )
    if depth == 0:
        return plain
    return st.one_of(
        plain,
        st.builds("{} and {}".format, plain, plain),
        st.builds("{} or {} and {}".format, plain, plain, plain),
        st.builds("not {}".format, plain),
        st.builds("not ({} or {})".format, plain, plain),
    )


# The agreements' own kind of definition comes first, so that a failing example shrinks to it.
definitions = st.one_of(
    st.sampled_from(
        (
            "if(inference / e2e < 0.30, e2e, inference)",
            "e2e - queue - 50ms",
            "if(queue > 10ms, prefill * 1.5, inference)",
            "decode / 4 - prefill / 4",
        )
    ),
    durations(2),
)
