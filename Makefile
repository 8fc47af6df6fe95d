# 'make sample' and 'make test' install into .venv when needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# OpenMP threads that spin while they wait slow everything down as soon as other jobs run.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: sample test coverage lint docs checkpoints clean

sample: $(VENV)/.core
	$(BIN)/graphite-gen sample -n 100 -o samples.graphml --force
	@echo "100 graphs are in samples.graphml."

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto $(ARGS)

# Takes about half as long again as 'make test'.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered --cov-fail-under=90

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

checkpoints: $(VENV)/.core
	$(BIN)/python -m benchmarks.reproduce.train_checkpoints

clean:
	rm -rf $(VENV) build dist site *.egg-info samples.graphml samples.png

# The constraints pin torch to a version with a CPU build; the stamp files record what is installed.
$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@
