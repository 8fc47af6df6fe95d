# 'make sample' and 'make test' set everything up in .venv, once, and reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Waiting OpenMP threads that spin slow everything down beside other work.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: sample test coverage lint checkpoints clean

sample: $(VENV)/.core
	$(BIN)/graphite-gen sample -n 100 -o samples.graphml --force
	@echo "100 graphs are in samples.graphml."

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto $(ARGS)

# Half as long again as the tests alone.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered --cov-fail-under=90

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

checkpoints: $(VENV)/.core
	$(BIN)/python benchmarks/train_checkpoints.py

clean:
	rm -rf $(VENV) build dist *.egg-info samples.graphml

# The constraints hold torch at a version with a CPU build; the stamp files say what is installed.
$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
