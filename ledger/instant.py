"""Instants as whole microseconds since 1970, and back, and as text: exact, since nothing passes through a float."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def since_1970_us(instant: datetime) -> int:
    """Microseconds from 1970 to an aware instant; negative before it.

    >>> since_1970_us(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (instant - EPOCH) // MICROSECOND


def instant_of(since_1970_us: int) -> datetime:
    """The instant in UTC so many microseconds after 1970. Raises OverflowError outside the years 1 to 9999.

    >>> instant_of(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return EPOCH + since_1970_us * MICROSECOND


def instant_text(instant: datetime) -> str:
    """An aware instant in UTC, RFC 3339 with `Z`."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def local_text(local: datetime) -> str:
    """An aware instant with the offset of its zone, RFC 3339; in UTC where the offset has seconds, which no offset is written with.

    >>> from datetime import timezone
    >>> local_text(instant_of(0).astimezone(timezone(timedelta(hours=8))))
    '1970-01-01T08:00:00+08:00'
    >>> local_text(instant_of(0).astimezone(timezone(timedelta(seconds=-2670))))
    '1970-01-01T00:00:00Z'
    """
    offset = local.utcoffset()
    return instant_text(local) if offset is None or offset.seconds % 60 else local.isoformat()


def second_text(instant: datetime) -> str:
    """The same, cut to the second: for people."""
    return instant_text(instant.replace(microsecond=0))
