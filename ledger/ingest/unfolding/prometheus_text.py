"""Text of a Prometheus scrape, recognised so that it can be refused with the reason: samples of a process are no requests.

Source: the text format of Prometheus and of OpenMetrics.
"""

import json
import re
from collections.abc import Iterable, Iterator

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*# (?:HELP|TYPE|UNIT) ([A-Za-z_:][\w:]*)[ \n]")


def fits(start: bytes) -> bool:
    """Whether the text begins with the description of a metric."""
    return _START.match(start) is not None


def unfold(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The name of the first metric: enough to name the format."""
    named = _START.match(next(iter(pieces), b""))
    yield 1, json.dumps({"prometheus_metric": named[1].decode() if named else ""}).encode()
