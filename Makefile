# `make demo` shows the product, `make test` proves it. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench cases setup clean

demo: $(VENV)/product
	$(BIN)/ledger demo

test: $(VENV)/tools check cases
	$(BIN)/pytest -n 2

check: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Settles every case of ../shared/cases through the command line and compares each key both ways.
cases: $(VENV)/tools
	$(BIN)/python tests/cases.py

bench: $(VENV)/tools
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/settle.py

setup: $(VENV)/tools

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/product: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/tools: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(VENV)/product $@

clean:
	rm -rf $(VENV)
