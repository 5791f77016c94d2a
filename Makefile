# `make demo` and `make test` each work alone on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := gradestack-runs/demo

.PHONY: help demo test coverage lint format bench clean

help:
	@echo "make demo      install, grade the bundled example, write a report"
	@echo "make test      install with dev extras; lint, types, tests"
	@echo "make coverage  the tests once more, and which lines and branches they reach; slow"
	@echo "make lint      lint and types only"
	@echo "make format    format the code"
	@echo "make bench     run the benchmarks (about 20 minutes), write benchmarks/RESULTS.md"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(BIN)/python pyproject.toml
	$(PIP) install --quiet --editable '.[bench]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/gradestack run examples/airline/suite.yaml --output $(DEMO)
	@echo
	@echo "Open the report: $(CURDIR)/$(DEMO)/report.html"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py benchmarks/peer_side/*.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: lint
	$(BIN)/pytest --numprocesses auto

coverage: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses auto --cov --cov-report=term

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/collect.py --cache $(VENV)/bench

clean:
	rm -rf $(VENV) build dist gradestack-runs .coverage .mypy_cache .pytest_cache .ruff_cache
