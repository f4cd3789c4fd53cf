"""Where samples come from: a file, standard input, or a Prometheus server that is asked over HTTP. The I/O of `prometheus`.

A server is asked for raw samples (a range selector, an hour at a time) or, with a step, for what a query gives at each step. Answers are
bounded in bytes and in time; a redirect leads to the same scheme, host and port or is refused; user and password of a URL are sent to that
server and never shown. Source: the HTTP API of Prometheus.
"""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, unquote, urlencode, urlsplit, urlunsplit

from ledger.errors import LedgerError
from ledger.ingest.file_state import standard_input
from ledger.ingest.prometheus import Series, cut, read_answer
from ledger.instant import since_1970_us

MOST_BYTES = 128 << 20  # of a file or an answer
PIECE_BYTES = 1 << 16
PATIENCE_SECONDS = 30  # for a server that says nothing
LONGEST_SECONDS = 120  # for an answer as a whole
CHUNK_US = 3_600 * 1_000_000
MOST_STEPS = 10_000  # Prometheus refuses more than 11,000 points
UNREACHED = 4
_WITH_PASSWORD = re.compile(r"(//)?[^/]*:[^/]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A Prometheus server: its URL without user and password, and the header that has them."""

    url: str
    authorization: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuery:
    """What is looked at: a query, and the samples of it in [start, end], None for all that a file has. A server is asked for what the query
    gives at every step; without a step for raw samples, and the query is a selector then."""

    query: str
    start: datetime | None = None
    end: datetime | None = None
    step_us: int | None = None


def series_at(place: str, wanted: SampleQuery, read: Callable[[bytes, str], list[Series]] = read_answer) -> Iterator[Series]:
    """The series of a server (a URL) or a file, which `read` makes of its bytes; only samples of the span. Raises LedgerError."""
    start_us = None if wanted.start is None else since_1970_us(wanted.start)
    end_us = None if wanted.end is None else since_1970_us(wanted.end)
    if not is_url(place):
        answers: Iterable[list[Series]] = [read(read_file(place), place)]
    elif start_us is None or end_us is None or end_us <= start_us:
        raise LedgerError("a server has to be asked for a span", cure="give --from and a later --until", exit_code=2)
    elif wanted.step_us:
        answers = evaluated(server_at(place), wanted.query, start_us, end_us, wanted.step_us)
    else:
        answers = raw_samples(server_at(place), wanted.query, start_us, end_us)
    for answer in answers:
        yield from (cut(series, start_us, end_us) for series in answer)


def is_url(place: str) -> bool:
    """Whether the place is a server, and not a file. What has a password and lacks its scheme is none, but no message may show it."""
    return "://" in place or _WITH_PASSWORD.match(place) is not None


def read_file(place: str) -> bytes:
    """The bytes of a file; `-` is standard input. Raises LedgerError if it cannot be read or is too large."""
    try:
        if place == "-":
            with standard_input() as stream:
                content = stream.read(MOST_BYTES + 1)
        else:
            with open(place, "rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise LedgerError(f"{place}: {getattr(error, 'strerror', None) or error}", cure="name a file that can be read") from error
    if len(content) > MOST_BYTES:
        raise LedgerError(f"{place}: more than {MOST_BYTES >> 20} MB", cure="split it: several files are read together")
    return content


def server_at(url: str) -> Server:
    """The server of a URL: http or https, a host, and if need be port, path, user, password. Raises LedgerError, without the URL."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment) and parts.port != 0
    except ValueError:  # the port, or an address in brackets
        is_whole = False
    if not is_whole or not url.isascii() or not url.isprintable() or " " in url:
        raise LedgerError("the URL of Prometheus is not understood", cure="write it as http://host:9090 or https://host/path", exit_code=2)
    authorization = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(secret.encode()).decode()}"
    shown = SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", "")
    return Server(url=urlunsplit(shown), authorization=authorization)


def raw_samples(server: Server, selector: str, start_us: int, end_us: int) -> Iterator[list[Series]]:
    """The samples of the selector's series in [start, end] as they were scraped, an hour at a time."""
    for chunk_end in (*range(start_us + CHUNK_US, end_us, CHUNK_US), end_us):
        # A selector may leave its first instant out: one millisecond more, and what comes twice counts once.
        length_ms = min(CHUNK_US, chunk_end - start_us) // 1000 + 1
        yield _answer(server, "query", {"query": f"{selector}[{length_ms}ms]", "time": _seconds(chunk_end)})


def evaluated(server: Server, query: str, start_us: int, end_us: int, step_us: int) -> Iterator[list[Series]]:
    """What the query gives at start, start + step, ... up to the end, so many steps at a time as Prometheus allows."""
    for chunk_start in range(start_us, end_us + 1, step_us * MOST_STEPS):
        chunk_end = min(chunk_start + step_us * (MOST_STEPS - 1), end_us)
        span = {"start": _seconds(chunk_start), "end": _seconds(chunk_end), "step": _seconds(step_us)}
        yield _answer(server, "query_range", {"query": query, **span})


def _answer(server: Server, call: str, parameters: dict[str, str]) -> list[Series]:
    request = urllib.request.Request(f"{server.url}/api/v1/{call}?{urlencode(parameters)}", headers={"Accept": "application/json"})
    if server.authorization:
        request.add_unredirected_header("Authorization", server.authorization)
    try:
        with _opener().open(request, timeout=PATIENCE_SECONDS) as response:
            return read_answer(_body(response, server), server.url)
    except urllib.error.HTTPError as error:
        raise LedgerError(f"{server.url}: {_said(error)}", cure="look at the query, the span, and user and password") from error
    except TimeoutError as error:
        said = f"{server.url}: nothing came for {PATIENCE_SECONDS} s"
        raise LedgerError(said, cure="ask for a shorter span, or look whether it is busy", exit_code=UNREACHED) from error
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        cause = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise LedgerError(f"{server.url}: {reason}", cure="check that Prometheus answers there", exit_code=UNREACHED) from error


def _body(response: Any, server: Server) -> bytes:
    deadline = time.monotonic() + LONGEST_SECONDS
    content = bytearray()
    while piece := response.read1(PIECE_BYTES):
        content += piece
        if len(content) > MOST_BYTES:
            raise LedgerError(f"{server.url}: an answer of more than {MOST_BYTES >> 20} MB", cure="ask for less: fewer series, or a --step")
        if time.monotonic() > deadline:
            raise LedgerError(f"{server.url}: no whole answer in {LONGEST_SECONDS} s", cure="ask for a shorter span", exit_code=UNREACHED)
    return bytes(content)


def _said(error: urllib.error.HTTPError) -> str:
    """What the server said when it refused: its status, and the reason if it gives one as JSON."""
    try:
        said = json.loads(error.read(PIECE_BYTES)).get("error", "")
    except (OSError, ValueError, RecursionError, AttributeError, http.client.HTTPException):
        said = ""
    return f"{error.code} {said if isinstance(said, str) and said else error.reason}"[:300]


def _seconds(microseconds: int) -> str:
    return f"{microseconds // 1_000_000}.{microseconds % 1_000_000:06d}"


class _SameServer(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if _origin(newurl) != _origin(req.full_url):
            raise LedgerError(f"{req.host} redirects to another server", cure="give the URL of Prometheus itself")
        redirected = super().redirect_request(req, fp, code, msg, headers, newurl)
        authorization = req.get_header("Authorization")
        if redirected is not None and authorization:
            redirected.add_unredirected_header("Authorization", authorization)
        return redirected


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return parts.scheme, None, None


def _opener() -> urllib.request.OpenerDirector:
    """Knows http and https, and no other scheme."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor, _SameServer,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener
