"""No binary floating point where money, rates or latencies are: not a float literal, not the name, in the pure core."""

import ast
from pathlib import Path

import pytest

LEDGER = Path(__file__).parents[2] / "ledger"
MODULES = sorted(path for folder in ("contract", "settlement", "rating") for path in (LEDGER / folder).glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_core_has_no_float(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    literals = [node.lineno for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    names = [node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == "float"]
    assert literals + names == []
