# `make demo` and `make test` each work alone on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := gradestack-runs/demo
THIRD := tests/third_party/gradestack-shout
DOWNSTREAM := build/downstream
ORACLES := build/oracles
PEERS := build/peers
ACCESSIBILITY := build/accessibility
SITE := build/docs
RELEASE := build/release

# Most tests start the program anew: what it imports is compiled once, whatever the shell says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test slow docs reference golden fuzz proofs faults oracles peers accessibility matrix downstream coverage lint style types typing format changelog release bench pages clean

help:
	@echo "make demo        install, grade the bundled example, write a report"
	@echo "make test        install with dev extras; lint, types, tests"
	@echo "make slow        the tests that take over half a second each; run before a change lands"
	@echo "make docs        the documentation: runs every example, builds the site into build/site, strictly, in an environment of its own"
	@echo "make reference   write docs/reference.md, docs/components and the other generated parts of the docs"
	@echo "make golden      record what every golden run prints and writes into OUT (build/golden)"
	@echo "make fuzz        mutated files and suites for GRADESTACK_FUZZ_SECONDS (600)"
	@echo "make proofs      the slow proofs: many more cases of what the tests look at, published data, benchmark scripts"
	@echo "make faults      the fault laboratory: runs that are killed, interrupted, out of room or hung, and continued"
	@echo "make oracles     statistics and readers against the libraries that compute and write the same, in an environment of its own"
	@echo "make peers       presets of tool calls against the released agentevals and bfcl-eval, 10,000 cases each, in an environment of its own"
	@echo "make accessibility  every page in a headless Chromium under axe-core, in an environment of its own"
	@echo "make matrix      the tests on every Python from 3.11 to 3.14 that is found; says which were"
	@echo "make downstream  a plugin package of its own, installed beside this one, runs its own tests"
	@echo "make coverage    the tests and proofs once more, and which lines and branches they reach; slow"
	@echo "make lint        lint and types only: style, types, typing"
	@echo "make typing      the types of the public names, by mypy and pyright"
	@echo "make format      format the code"
	@echo "make changelog   print what the fragments in changelog.d come to"
	@echo "make release     what a release takes: builds and checks wheel and sdist, installs the wheel on every Python found, lists licences"
	@echo "make pages       what the page of 100,000 samples costs to make and, where there is a Chromium, to open"
	@echo "make bench       run the benchmarks (about 40 minutes), write benchmarks/RESULTS.md"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml core/gradestack/_version.py
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml core/gradestack/_version.py
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(BIN)/python pyproject.toml core/gradestack/_version.py
	$(PIP) install --quiet --editable '.[bench]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/gradestack run examples/airline/suite.yaml --output $(DEMO)
	@echo
	@echo "Open the report: $(CURDIR)/$(DEMO)/report.html"

lint: style types typing

style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy
	$(BIN)/mypy benchmarks/*.py benchmarks/peer_side/*.py benchmarks/third_party/*.py

typing: $(VENV)/.installed-dev
	$(BIN)/mypy typing_tests
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Lint beside the tests, whose closing line comes last; what it finds is printed before.
test: $(VENV)/.installed-dev
	@mkdir -p build; echo "lint and types run beside the tests: build/lint.log"
	@$(MAKE) --no-print-directory lint >build/lint.log 2>&1 & lint=$$!; \
	$(BIN)/pytest --numprocesses auto; tests=$$?; \
	wait $$lint || { cat build/lint.log; exit 1; }; exit $$tests

slow: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses auto -m "slow and not proof and not faults and not oracles and not accessibility"

reference: $(VENV)/.installed-dev
	$(BIN)/python docs/reference.py

docs: $(VENV)/.installed-dev
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip --disable-pip-version-check install --quiet --editable . 'mkdocs-material>=9.7,<10' 'nbconvert>=7,<8'
	$(SITE)/bin/mkdocs build --quiet
	$(BIN)/pytest --numprocesses auto -m "not proof" tests/docs tests/plugins/pages/test_notebook.py
	@echo "Open the site: $(CURDIR)/build/site/index.html"

golden: $(VENV)/.installed-dev
	$(BIN)/python tests/golden/golden.py record $(or $(OUT),build/golden)

fuzz: $(VENV)/.installed-dev
	GRADESTACK_FUZZ_SECONDS=$${GRADESTACK_FUZZ_SECONDS:-600} $(BIN)/pytest -m "proof or not proof" tests/fuzz

proofs: $(VENV)/.installed-dev
	GRADESTACK_THOROUGH=1 $(BIN)/pytest --numprocesses auto -m "proof or hypothesis"

faults: $(VENV)/.installed-dev
	$(BIN)/pytest --numprocesses auto -m faults

# Without the extra `remote`: inspect_ai asks for an older fsspec than that takes.
oracles:
	$(PYTHON) -m venv $(ORACLES)
	$(ORACLES)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[dask,networkx,tables,query,paths,judge]' hypothesis pandas pytest pytest-timeout \
		krippendorff 'inspect_ai>=0.3.285' langchain-core openai openai-agents anthropic opentelemetry-proto google-adk atif
	$(ORACLES)/bin/python -m pip --disable-pip-version-check install --quiet langchain-openai openinference-instrumentation-langchain \
		openinference-instrumentation-openai opentelemetry-exporter-otlp-proto-common opentelemetry-instrumentation-langchain \
		opentelemetry-instrumentation-openai opentelemetry-instrumentation-openai-v2==2.4b0 opentelemetry-util-genai==0.4b0
	$(ORACLES)/bin/pytest -m oracles tests/oracles

# bfcl-eval asks for the clients of every model it knows; its checker of calls needs none of them.
peers: $(VENV)/.installed
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --disable-pip-version-check install --quiet agentevals==0.0.9
	$(PEERS)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps bfcl-eval==2025.10.27.1
	cd $(PEERS) && npm pack --silent promptfoo@0.121.20 && tar xzf promptfoo-0.121.20.tgz
	$(BIN)/python benchmarks/presets.py --cases 10000 --python $(PEERS)/bin/python --promptfoo $(PEERS)/package

accessibility:
	$(PYTHON) -m venv $(ACCESSIBILITY)
	$(ACCESSIBILITY)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[dev]'
	$(ACCESSIBILITY)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps axe-playwright-python
	$(ACCESSIBILITY)/bin/pytest -m accessibility tests/browser

matrix: $(VENV)/.installed-dev
	$(BIN)/nox

downstream:
	rm -rf $(DOWNSTREAM)
	$(PYTHON) -m venv $(DOWNSTREAM)
	$(DOWNSTREAM)/bin/python -m pip --disable-pip-version-check install --quiet . '$(THIRD)[test]'
	cd $(THIRD) && $(abspath $(DOWNSTREAM))/bin/python -m pytest

coverage: $(VENV)/.installed-dev
	GRADESTACK_THOROUGH=1 $(BIN)/pytest --numprocesses auto -m "(proof or faults or not proof) and not oracles" --cov --cov-report=term

changelog: $(VENV)/.installed-dev
	$(BIN)/towncrier build --draft --version unreleased

# Nothing is uploaded: .github/workflows/release.yml does that for a tag.
release: $(VENV)/.installed-dev
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip --disable-pip-version-check install --quiet 'twine>=6'
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(RELEASE)/bin/twine check --strict dist/*
	ls -l dist
	$(BIN)/pytest -q -m "not proof" tests/packaging
	$(BIN)/nox --session release

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/collect.py --cache $(VENV)/bench

pages: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/pages.py

clean:
	rm -rf $(VENV) .nox build dist gradestack-runs .coverage .mypy_cache .pytest_cache .ruff_cache
