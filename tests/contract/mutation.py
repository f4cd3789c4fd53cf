"""Contract files as nobody should write them: golden files changed by bytes and by structure, and what must hold of the answer to any file.

`python -m tests.contract.mutation --seed 1 --seconds 600 --keep FOLDER` tries many and keeps those that break it.
"""

import argparse
import json
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml
from click.testing import CliRunner

from ledger.cli.main import cli
from ledger.contract.reader import contract_texts, read_contract
from ledger.contract.texts import contract_of_texts

from .golden import GOLDEN

LONGEST_S = 1.0
ATTEMPTS = 3  # a machine that does other work too makes one answer slow, and not each of three
PIECES = [
    *(b"[", b"]", b"{", b"}", b": ", b"- ", b"? ", b", ", b"\n", b"\r", b"\t", b"'", b'"', b"|", b">", b"#", b"%", b"@", b"`", b"\\"),
    *(
        b"&a ",
        b"*a",
        b"!",
        b"!!str ",
        b"<<: ",
        b"---\n",
        b"...\n",
        b"%YAML 1.1\n",
        b"\\x",
        b"\\U0010FFFF",
        b'"\\uD800"',
        b"\n  ",
        b"\n\n\n",
    ),
    *(
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3\xa9",
        b"\xe2\x80\xae",
        b"\xe2\x80\x8b",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
    ),
    *(b"none", b"null", b"~", b"300", b"9" * 30, b"1e400", b"NaN", b"-1", b"0", b"99999999999ms", b"e2e", b"clause", b"by_name", b"[key]"),
]
SCALARS = [
    *("", "none", "null", "~", "NO", "22:30", "0100", "1.10", "-1", "0", "300", "1e400", "NaN", "9" * 40, "0.1234567890123", "٣"),
    *(
        "0ms",
        "99999999999999999ms",
        "36501d",
        "< 0ms",
        "<= 1us",
        "> 36500d",
        "100ms .. 300ms",
        "5ms ..< 5ms",
        "1us..1us",
        "2x",
        "0x",
        "100%",
    ),
    *("2026-02-30", "2999-12-31", "1970-01-01", "2026-05-03T10:00:00", "2999-12-31T23:59:59+14:00", "UTC", "Factory", "XAU", "KWD", "yes"),
    *("e2e / 0", "e2e / (queue - queue)", "(" * 90, "not " * 50, "min(e2e)", "if(e2e / e2e != 0.1, e2e, 0ms)", "e2e * 999999999999999"),
    *(
        "a" * 300,
        "推理服务",
        "=1+1",
        "\u202e",
        "\ud800",
        "\x00",
        "a\nb",
        " a ",
        "clause",
        "by_name",
        "standard",
        "month",
        "16k",
        "> 16k",
        "> 5",
    ),
]


@cache
def corpus() -> tuple[bytes, ...]:
    """The golden contracts, good and bad, and the ready-made ones."""
    ready_made = Path(__file__).parents[2] / "contracts"
    files = sorted([*(GOLDEN / "good").iterdir(), *(GOLDEN / "bad").iterdir(), *ready_made.glob("*.yaml")])
    return tuple(file.read_bytes() for file in files)


@cache
def _trees() -> tuple[str, ...]:
    readable = [read_contract(content, "") for content in corpus()]
    return tuple(json.dumps(contract_texts(content)) for content, result in zip(corpus(), readable, strict=True) if result.contract)


def changed(random: Random) -> bytes:
    """A file of the corpus after a few changes."""
    return _changed_bytes(random) if random.random() < 0.5 else _changed_structure(random)


def _changed_bytes(random: Random) -> bytes:
    content = bytearray(random.choice(corpus()))
    for _ in range(random.randint(1, 6)):
        start = random.randint(0, len(content))
        end = min(start + random.choice((0, 0, 1, 5, 40, 400)), len(content))
        match random.randint(0, 6):
            case 0:
                content[start:end] = random.choice(PIECES)
            case 1:
                content[start:end] = random.choice(PIECES) * random.choice((2, 30, 2_000))
            case 2:
                content[start:end] = content[start:end] * random.choice((2, 10, 300))
            case 3:
                other = random.choice(corpus())
                at = random.randint(0, len(other))
                content[start:end] = other[at : at + random.choice((10, 200, 4_000))]
            case 4:
                content[start:end] = bytes(random.randint(0, 255) for _ in range(random.randint(0, 8)))
            case 5:
                lines = bytes(content).split(b"\n")
                at, to = random.randint(0, len(lines) - 1), random.randint(0, len(lines) - 1)
                lines.insert(to, random.choice((b"", b" ", b"  ", b"\t")) + lines.pop(at))
                content = bytearray(b"\n".join(lines))
            case _:
                del content[start:end]
    return bytes(content[:400_000])


def _changed_structure(random: Random) -> bytes:
    tree = json.loads(random.choice(_trees()))
    for _ in range(random.randint(1, 6)):
        tree = _with_change(tree, random)
    style = random.choice((None, True, False))
    return yaml.dump(
        tree, default_flow_style=style, width=random.choice((20, 100, 1_000)), allow_unicode=random.random() < 0.5, sort_keys=False
    ).encode("utf-8", "surrogatepass")


def _with_change(tree: Any, random: Random) -> Any:
    """The tree with one part replaced, removed, repeated, renamed or moved."""
    holder, key = random.choice(list(_parts(tree)))
    match random.randint(0, 6):
        case 0:
            holder[key] = random.choice(SCALARS)
        case 1:
            del holder[key]
        case 2:
            holder[key] = json.loads(json.dumps(random.choice(list(_parts(tree)))[0]))
        case 3:
            for _ in range(random.choice((1, 5, 30))):
                holder[key] = random.choice(([holder[key]], {"a": holder[key]}))
        case 4 if isinstance(holder, dict):
            name = random.choice((*SCALARS, key[1:], f"{key}s", key.upper(), key.replace("_", "-")))
            holder[name] = holder.pop(key)
        case 4 | 5 if isinstance(holder, list):
            holder += [holder[key]] * random.choice((1, 3, 400))
        case _:
            holder[key] = random.choice(([], {}, random.choice(SCALARS), [random.choice(SCALARS)]))
    return tree


def _parts(tree: Any) -> Any:
    """Every place of the tree that holds something, as (holder, key); at least one."""
    pending, found = [tree], False
    while pending:
        holder = pending.pop()
        for key, part in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            found = True
            yield holder, key
            if isinstance(part, dict | list):
                pending.append(part)
    if not found:
        tree["schema"] = "x"
        yield tree, "schema"


def faults(content: bytes, folder: Path, beside: Path | None = None) -> list[str]:
    """What is wrong with the answer of `ledger contract check` to the file, alone or beside another."""
    file = folder / "contract.yaml"
    file.write_bytes(content)
    files = [str(file), *([str(beside)] if beside else [])]
    found: list[str] = []
    for options in ([], ["--format", "json"]):
        for _ in range(ATTEMPTS):
            started = time.process_time()
            result = CliRunner().invoke(cli, ["contract", "check", *options, *files])
            if time.process_time() - started < LONGEST_S:
                break
        else:
            found.append("slow")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            return [*found, f"raises {result.exception!r}"]
    findings = json.loads(result.stdout)
    is_wrong = any(finding["severity"] == "error" for finding in findings)
    lines = len(content.split(b"\n")) + content.count(b"\r") + 1
    for finding in findings:
        if not (finding["found"] and finding["expected"] and finding["cure"]):
            found.append(f"says {finding}")
        if finding["file"] == str(file) and (finding["line"] or 0) > lines:
            found.append(f"names a line that there is not: {finding}")
        if finding["found"] == "text that is not YAML":
            found.append("has no words for a mistake")
        ends = (finding["end_line"] or finding["line"] or 0, finding["end_column"] or finding["column"] or 0)
        if ends < (finding["line"] or 0, finding["column"] or 0):
            found.append(f"ends before it begins: {finding}")
    if result.exit_code != is_wrong:
        found.append(f"ends with {result.exit_code}")
    if not result.stdout.replace("\n", "").isprintable():
        found.append("prints what cannot be seen")
    if not is_wrong:
        read = read_contract(content, "")
        if read.contract is None or contract_of_texts(json.loads(json.dumps(contract_texts(content)))) != read.contract:
            found.append("is not what its texts say")
    return found


def _main() -> int:
    from tempfile import TemporaryDirectory

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    until, tried, broken = time.monotonic() + given.seconds, 0, Counter[str]()
    with TemporaryDirectory() as folder:
        while time.monotonic() < until:
            random = Random(given.seed * 1_000_000_000 + tried)
            content = changed(random)
            beside = GOLDEN / "good" / "quiet.yaml" if random.random() < 0.2 else None
            for fault in faults(content, Path(folder), beside):
                broken[fault[:80]] += 1
                if given.keep and broken[fault[:80]] <= 3:
                    (given.keep / f"{given.seed}-{tried}.yaml").write_bytes(content)
                    (given.keep / f"{given.seed}-{tried}.txt").write_text(fault)
            tried += 1
    print(f"seed {given.seed}: {tried} files from a corpus of {len(corpus())}; {dict(broken) or 'none broke it'}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(_main())
