PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export OMP_NUM_THREADS ?= 1

.PHONY: quickstart test test-slow test-gpu lint types format install clean

# The two commands of the README ------------------------------------------------------------
quickstart: install
	$(BIN)/quadspike quickstart

test: lint types
	$(BIN)/python -m pytest -n 2 -m "not slow and not gpu"

# --------------------------------------------------------------------------------------------
test-slow: install
	$(BIN)/python -m pytest -n 2 -m "slow and not gpu"

# Installs nothing: uses the Python at hand, for example PYTHON=/usr/bin/python3. Reads only the
# files with such tests, so that a package missing there costs those that import it and no more.
test-gpu:
	$(PYTHON) -m pytest -m gpu -p no:cacheprovider --continue-on-collection-errors \
		$(shell grep -l "mark.gpu" tests/*.py)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(READY)

# torch first, so that nothing else chooses another build of it.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
