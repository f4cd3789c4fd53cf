"""What a file cannot say and the command line does: the account, the model, and when the first record was received.

Takes texts of options and gives a `Given`; a mapping is filled with it, and its hash says so. Source: specification, section 2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ledger.contract.scalar import duration_text, parse_instant
from ledger.instant import instant_of, instant_text, since_1970_us


class Asked(StrEnum):
    """What a mapping asks for, by the name of the option."""

    ACCOUNT = "account"
    MODEL = "model"
    START = "start"
    STEP = "step"


# What the user adds to the command.
EXAMPLES = {
    Asked.ACCOUNT: "--account NAME, whose requests these are",
    Asked.MODEL: "--model NAME, which served them",
    Asked.START: "--start 2026-05-01T00:00:00Z, the instant from which the file counts",
    Asked.STEP: "--step 1s, the time from one record to the next",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Fills what is empty: account and model; the instant from which a file counts, microseconds since 1970, and its step."""

    account: str | None = None
    model: str | None = None
    start_us: int | None = None
    step_us: int | None = None

    def texts(self) -> Iterator[tuple[Asked, str]]:
        """What is given, in a fixed order."""
        for asked, value in zip(Asked, (self.account, self.model, self.start_us, self.step_us), strict=True):
            if value is not None:
                yield asked, str(value)

    def shown(self) -> dict[Asked, str]:
        """What is given, as the command line writes it."""
        shown = dict(self.texts())
        if self.start_us is not None:
            shown[Asked.START] = instant_text(instant_of(self.start_us))
        if self.step_us is not None:
            shown[Asked.STEP] = duration_text(self.step_us)
        return shown

    def kept(self) -> dict[str, str]:
        """What is kept with a refused row's fields, so that its mapping can be filled again: `#account` and so on."""
        return {f"#{asked}": text for asked, text in self.texts()}

    @classmethod
    def of_fields(cls, fields: Mapping[str, str | None]) -> "Given":
        """What was kept with these fields."""
        return cls.of_texts({asked: fields.get(f"#{asked}") for asked in Asked})

    @classmethod
    def of_texts(cls, texts: Mapping[str, str | None]) -> "Given":
        """What has these texts, by what was asked."""
        account, model, start, step = (texts.get(asked) or None for asked in Asked)
        return cls(account=account, model=model, start_us=int(start) if start else None, step_us=int(step) if step else None)


def instant_us(text: object) -> int:
    """Microseconds since 1970 of an RFC 3339 text with an offset. Raises ValueError, in words, if it is none."""
    return since_1970_us(parse_instant(text))
