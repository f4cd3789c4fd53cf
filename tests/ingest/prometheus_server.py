"""A Prometheus server on this machine that gives the samples of a golden file, or misbehaves."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit


class Prometheus(ThreadingHTTPServer):
    """Remembers what it was asked, and by whom."""

    def __init__(self, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.file = file
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


@contextmanager
def serving(file: Path) -> Iterator[Prometheus]:
    server = Prometheus(file)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Answering(BaseHTTPRequestHandler):
    """The samples of the range that is asked for; under some paths a redirect, a refusal, too much or too little."""

    server: Prometheus

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.authorizations.append(self.headers["Authorization"])
        parts = urlsplit(self.path)
        match parts.path.split("/")[1]:
            case "elsewhere":
                self.redirect(f"http://127.0.0.1:1{parts.path}")
            case "file":
                self.redirect("file:///etc/passwd")
            case "moved":
                self.redirect(self.path.replace("/moved", ""))
            case "refused":
                self.give(422, b'{"status":"error","error":"too many \\u001b[2J points"}')
            case "large":
                self.give(200, b"[" * 5000)
            case "cut":
                self.give(200, b"[", length=100)
            case "warning":
                self.give(200, b'{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":["one store is down"]}')
            case "silent":
                time.sleep(0.5)
            case "slow":
                self.give(200, b"[", length=100)
                for _ in range(10):
                    time.sleep(0.1)
                    self.wfile.write(b"[")
                    self.wfile.flush()
            case _:
                self.give(200, self.samples(parse_qs(parts.query)))

    def samples(self, query: dict[str, list[str]]) -> bytes:
        end = float(query["time" if "time" in query else "end"][0])
        length = int(query["query"][0].rpartition("[")[2].removesuffix("ms]")) / 1000 if "time" in query else end - float(query["start"][0])
        answer = json.loads(self.server.file.read_bytes())
        for one in answer["data"]["result"]:
            one["values"] = [[at, value] for at, value in one["values"] if end - length <= at <= end]
        return json.dumps(answer).encode()

    def redirect(self, place: str) -> None:
        self.send_response(302)
        self.send_header("Location", place)
        self.end_headers()

    def give(self, status: int, content: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
