"""The base contract of acme-bank with texts replaced, and files of requests under it, so that a test writes only what it is about."""

from pathlib import Path

CONTRACT = Path(__file__).parents[1] / "golden" / "cases" / "edges" / "contract.yaml"
BASE = CONTRACT.read_text()
HEADER = "account,request_id,model,received_at,queue_us,inference_us,input_tokens,output_tokens,status"
# Changes of its texts: version 1 that needs two approvals, a second version from 10 May on, and a contract of another customer.
REQUIRED = ("version: 1\n", "version: 1\nrequire_approvals: [legal, finance]\n")
SECOND = (("version: 1\n", "version: 2\nreplaces: 1\nrequire_approvals: [legal]\n"), ("from: 2026-01-01", "from: 2026-05-10"))
OTHER = (("id: acme-bank-llm", "id: other"), ("    - acme-bank\n", "    - other-account\n"))


def write_contract(folder: Path, *changes: tuple[str, str], name: str = "contract.yaml") -> Path:
    """The base contract (3 breaches, alert at 80 %, windows of an hour in Shanghai) with texts replaced; each must be there."""
    text = BASE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text)
    return path


def write_events(folder: Path, rows: list[str], name: str = "events.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def request(
    number: int, at: str, *, latency_us: int = 150_000, account: str = "acme-bank", model: str = "deepseek-v4", status: int = 200
) -> str:
    """A row under HEADER."""
    return f"{account},r{number:06},{model},{at},0,{latency_us},1000000,500,{status}"
