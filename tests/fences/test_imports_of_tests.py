"""The fence between tests: what two of them need stands in a plainly named module beside them."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def imports_from_tests(text: str) -> list[str]:
    """What a module of this text imports from test modules, or of them, by any form of import."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            found += [f"{source}.{alias.name}" for alias in node.names if source.startswith(".") or source.split(".")[0] == "tests"]
    return [name for name in found if any(part.startswith("test_") for part in name.split("."))]


def test_no_module_of_the_tests_imports_from_a_test_module() -> None:
    found = {str(path.relative_to(TESTS)): imports_from_tests(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert len(found) > 1 and {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("from tests.cli.test_main import run", True),
        ("from tests.cli import test_main", True),
        ("from . import test_main", True),
        ("from .test_main import run", True),
        ("import tests.cli.test_main as main", True),
        ("from tests.cli.watched_command import run_watched", False),
        ("from ledger.workflows.test_contract import test_contract", False),
        ("import pytest", False),
    ],
)
def test_an_import_from_a_test_module_is_found_in_each_form(line: str, is_found: bool) -> None:
    assert bool(imports_from_tests(line)) == is_found
