"""Texts that no column could hold, such as prompts, are left out of records that are made anew.

Takes what JSON holds and gives it without them. Source: specification, section 2.
"""

LONGEST_TEXT = 10_000  # characters; a column holds 200


def without_long_texts(value: object) -> object:
    """What JSON holds, with each text of more than LONGEST_TEXT characters empty."""
    match value:
        case dict():
            return {key: without_long_texts(inner) for key, inner in value.items()}
        case list():
            return [without_long_texts(inner) for inner in value]
        case str() if len(value) > LONGEST_TEXT:
            return ""
        case _:
            return value
