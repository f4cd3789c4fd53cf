"""Reading rows back from the ledger under test."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

Rows = list[dict[str, Any]]


@pytest.fixture
def query(database_url: str) -> Callable[[str], Rows]:
    """`query("select ...")` on the fresh database."""

    def run(statement: str) -> Rows:
        with psycopg.connect(database_url, row_factory=dict_row) as connection:
            return connection.execute(statement.encode()).fetchall()

    return run
