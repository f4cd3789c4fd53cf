# `make demo` shows the product, `make test` proves it. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test kill-test check bench cases setup clean

demo: $(VENV)/product
	$(BIN)/ledger demo

test: $(VENV)/tools check cases
	$(BIN)/pytest -n 2

# make kill-test SEED=7 KILLS=400: loading, settling and closing, killed at every named step; and 50 contracts closed by 8 processes, one killed.
kill-test: SEED = 20260503
kill-test: KILLS = 200
kill-test: $(VENV)/tools
	LEDGER_KILL_SEED=$(SEED) LEDGER_KILLS=$(KILLS) LEDGER_KILL_CONTRACTS=50 LEDGER_KILLS_PER_STEP=5 $(BIN)/pytest tests/workflows/test_*kills.py

check: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Settles every case of ../shared/cases through the command line and compares each key both ways.
cases: $(VENV)/tools
	$(BIN)/python tests/cases.py

# make bench ROWS="100000 1000000" JSON=figures.json: other numbers of events, and the tables in a file too.
bench: $(VENV)/bench
	$(BIN)/python benchmarks $(ROWS) $(if $(JSON),--json '$(JSON)')

setup: $(VENV)/tools

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/product: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/tools: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(VENV)/product $@

$(VENV)/bench: $(VENV)/product
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV)
