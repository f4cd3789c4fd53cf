"""The page on contracts in plain words shows what the command says, in both languages."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ledger_on

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts" / "explain.md").read_text("utf-8")
ledger = ledger_on("postgresql://nobody@127.0.0.1:1/no-database")


def test_the_texts_of_the_page_are_those_of_the_command() -> None:
    english, chinese = re.findall(r"```text\n(.+?)```", PAGE, re.DOTALL)
    contract = ROOT / "contracts" / "acme-bank.yaml"
    assert ledger("contract", "explain", contract).stdout == english
    assert ledger("contract", "explain", contract, "--language", "zh").stdout == chinese


def test_the_commands_of_the_page_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "contracts").symlink_to(ROOT / "contracts")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^    ledger (.+)$", PAGE, re.MULTILINE)
    assert len(commands) == 4
    assert [ledger(*shlex.split(command)).exit_code for command in commands] == [0, 0, 0, 0]


def test_every_chinese_term_of_the_page_is_one_that_the_sentences_use() -> None:
    words = "".join(path.read_text("utf-8") for path in (ROOT / "ledger/documents/contract_prose/chinese").glob("*.py"))
    rows = re.findall(r"^\| .+? \| (.+?) \| .+ \|$", PAGE, re.MULTILINE)
    terms = [term for row in rows for term in re.split("[、；（）]", row) if re.search("[\u4e00-\u9fff]", term) and term != "中文"]
    assert len(terms) > 40
    assert [term for term in terms if term not in words] == []
