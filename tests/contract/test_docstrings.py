"""The examples in the docstrings of the contract package run."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["expression", "scalar"])
def test_the_examples_of_a_module_give_what_they_say(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"ledger.contract.{module}"))
    assert result.attempted and not result.failed
