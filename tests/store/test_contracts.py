"""Stored versions: what a file says is read once, and always means what the bytes mean to this reader."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.contract import reader
from ledger.contract.reader import contract_texts, read_contract
from ledger.contract.texts import contract_of_texts
from ledger.store import contracts
from ledger.store.contracts import StoredVersion, add_versions, content_hash, keep_readings, reader_sha256, stored_versions
from ledger.store.database import Database
from ledger.store.schema import contract_reading
from tests.store.sample_rows import AT

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "golden" / "cases"
SOUND = [*sorted((ROOT / "contracts").glob("*.yaml")), *sorted(CASES.glob("*/contract*.yaml"))]


def version(content: bytes) -> StoredVersion:
    contract = read_contract(content, "contract.yaml").contract
    assert contract is not None
    return StoredVersion(
        contract=contract, content=content, content_sha256=content_hash(content), file="contract.yaml", added_at=AT, author="test"
    )


EDGES = version((CASES / "edges" / "contract.yaml").read_bytes())


@pytest.mark.parametrize("path", SOUND, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_texts_of_a_file_give_the_contract_of_its_bytes_in_the_same_order(path: Path) -> None:
    kept = json.loads(json.dumps(contract_texts(path.read_bytes())))
    assert repr(contract_of_texts(kept)) == repr(read_contract(path.read_bytes(), path.name).contract)


def test_a_file_is_read_once_by_each_reader(owner_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(reader, "contract_texts", lambda content: read.append(content) or contract_texts(content))
    with owner_database.engine.connect() as connection:
        add_versions(connection, [EDGES])
        assert len(read) == 1
        keep_readings(connection)
        read.clear()
        assert stored_versions(connection) == [EDGES] and not read
        monkeypatch.setattr(contracts, "reader_sha256", lambda: "f" * 64)
        assert stored_versions(connection) == [EDGES]
        assert len(read) == 1
        keep_readings(connection)
        assert connection.scalars(select(contract_reading.c.reader_sha256)).all() == [reader_sha256(), "f" * 64]
        with pytest.raises(IntegrityError, match="never change"):
            connection.execute(update(contract_reading).values(texts={}))


def test_what_another_reader_read_is_not_believed(database: Database) -> None:
    other = contract_texts(EDGES.content.replace(b"percentile: 99", b"percentile: 50"))
    reading = {"content_sha256": EDGES.content_sha256, "reader_sha256": "0" * 64, "texts": other}
    with database.engine.begin() as connection:
        add_versions(connection, [EDGES])
        connection.execute(insert(contract_reading), reading)
        assert stored_versions(connection) == [EDGES]


REFUSED_TODAY = {
    "a full-width comma in brackets": ("accounts:\n    - acme-bank\n", "accounts: [甲，乙]\n"),
    "a curly quote at the start": ("title: Inference services\n", "title: “Inference” services\n"),
    "a full-width letter in a key": ("      deepseek-moe-4bit:\n", "      ｍini:\n"),
    "a character that nobody sees": ("title: Inference services\n", "title: Inference\u200b services\n"),
    "what a rule refuses": ("until: 2027-01-01", "until: 2026-01-01"),
}


@pytest.mark.parametrize("change", REFUSED_TODAY.values(), ids=REFUSED_TODAY)
def test_what_was_added_means_the_same_though_it_would_be_refused_today(change: tuple[str, str], database: Database) -> None:
    text = EDGES.content.decode()
    assert text.count(change[0]) == 1
    content = text.replace(*change).encode()
    assert read_contract(content, "contract.yaml").contract is None
    added = replace(EDGES, contract=contract_of_texts(contract_texts(content)), content=content, content_sha256=content_hash(content))
    with database.engine.begin() as connection:
        add_versions(connection, [added])
        assert stored_versions(connection) == [added]
    if "甲" in change[1]:
        assert added.contract.parties.customer.accounts == ("甲，乙",)


def test_a_change_of_any_module_of_the_reader_makes_another_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (ROOT / "ledger" / "contract").glob("*.py"):
        (tmp_path / module.name).write_bytes(module.read_bytes())
    monkeypatch.setattr(contracts, "files", lambda package: tmp_path)
    found = {reader_sha256.__wrapped__()}
    assert found == {reader_sha256()}
    for module in tmp_path.glob("*.py"):
        module.write_bytes(module.read_bytes() + b"\n")
        found.add(reader_sha256.__wrapped__())
    monkeypatch.setattr(contracts.metadata, "version", lambda package: "0")
    found.add(reader_sha256.__wrapped__())
    assert len(found) == len(list(tmp_path.iterdir())) + 2


def test_only_contracts_in_force_in_a_span_are_read_but_all_their_versions(database: Database) -> None:
    def changed(*texts: tuple[str, str]) -> StoredVersion:
        content = EDGES.content.decode()
        for old, new in texts:
            assert old in content
            content = content.replace(old, new)
        return version(content.encode())

    later = changed(("id: acme-bank-llm", "id: later"), ("- acme-bank\n", "- later\n"), ("from: 2026-01-01", "from: 2026-06-01"))
    second = changed(("version: 1\n", "version: 2\nreplaces: 1\n"), ("from: 2026-01-01", "from: 2026-09-01"))
    with database.engine.begin() as connection:
        add_versions(connection, [EDGES, second, later])

        def found(start: str, end: str) -> list[tuple[str, int]]:
            span = AT.fromisoformat(f"{start}T00:00Z"), AT.fromisoformat(f"{end}T00:00Z")
            return [(stored.contract.id, stored.contract.version) for stored in stored_versions(connection, in_force=span)]

        acme = [("acme-bank-llm", 1), ("acme-bank-llm", 2)]
        assert found("2026-04-30", "2026-05-02") == acme
        assert found("2026-06-30", "2026-08-01") == [*acme, ("later", 1)]
        assert found("2030-01-01", "2030-02-01") == []
