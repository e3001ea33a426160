# Every target works on a machine that has only Python 3.11 or newer and make.
#
#   make demo     install the core and run the demo in the terminal
#   make install  install the package with every extra
#   make test     lint, format check, types, tests with coverage
#   make quick    what changes break first: no slow tests, SQLite only; about two minutes
#   make bench    the quick form of every benchmark, figures under results/bench/
#   make docs     build the documentation site with strict links; run its examples and notebooks
#   make clean    remove what the targets above made, except the environment

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := learned,service,sign-in,traces,plots,experiments,cluster,onnx,docs,dev
PYTEST_ARGS ?=
PYTEST_WORKERS ?= auto

CORE := $(VENV)/.installed-core
ALL := $(VENV)/.installed-all
PEERS := $(VENV)/.installed-peers
# An environment that holds every extra stays that way when only the core is asked for.
AT_LEAST_CORE := $(if $(wildcard $(ALL)),$(ALL),$(CORE))
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: install demo test quick lint types unit bench docs clean distclean
.DEFAULT_GOAL := install

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(ALL): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[$(EXTRAS)]'
	@touch $(CORE) $@

$(PEERS): $(ALL)
	$(PIP) --editable '.[$(EXTRAS),peers]'
	@touch $@

install: $(ALL)

demo: $(AT_LEAST_CORE)
	$(BIN)/pear demo

lint: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(ALL)
	$(BIN)/mypy

unit: export OMP_NUM_THREADS ?= 1
unit: export OPENBLAS_NUM_THREADS ?= 1
unit: $(ALL)
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadfile --cov --cov-report=term $(PYTEST_ARGS)

test: lint types unit

quick: export OMP_NUM_THREADS ?= 1
quick: export OPENBLAS_NUM_THREADS ?= 1
quick: $(ALL)
	$(BIN)/ruff check --quiet .
	$(BIN)/pytest -q -n $(PYTEST_WORKERS) --dist loadfile \
	  -m "not slow and not browser and not postgresql" $(PYTEST_ARGS)

bench: $(PEERS)
	@mkdir -p results/bench
	@set -e; for script in benchmarks/[a-z]*.py; do \
	  name=$$(basename $$script .py); echo "== $$name"; \
	  $(BIN)/python $$script --quick --json results/bench/$$name.json; \
	done

docs: export NO_MKDOCS_2_WARNING := 1
docs: $(ALL)
	$(BIN)/mkdocs build --quiet --strict
	$(BIN)/pytest -q tests/docs tests/site tests/install/test_readme.py $(PYTEST_ARGS)

clean:
	rm -rf build dist results/bench .pytest_cache .mypy_cache .ruff_cache .hypothesis htmlcov .coverage .coverage.*
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)
