# `make demo` and `make test` are all a newcomer needs; the rest is for those who change the code.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo install install-dev test test-faults smoke lint benchmark lock clean

demo: install  ## run a small real study, print its table, name the report and the dashboard
	$(BIN)/study run demo

install: $(VENV)/installed

install-dev: $(VENV)/installed-dev  ## and what tests, checks and the compilation of GPU kernels need

# torch is asked for by name first: a range could bring a newer build with gigabytes of CUDA.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,gpu,server]"
	touch $@

test: install-dev  ## run every test
	$(BIN)/python -m pytest

smoke: install-dev  ## bring the whole service up on this machine, and run a small study through submit, kill, resume and report
	PYTHON=$(abspath $(BIN))/python deploy/smoke.sh

test-faults: install-dev  ## strike real studies by real faults, and put what that cost into docs/faults.md; needs root, half an hour
	STUDY_FAULTS_CSV=docs/results/faults.csv $(BIN)/python -m pytest -m faults tests/faults
	$(BIN)/python -m tests.faults.table

lint: install-dev  ## check style, types and the rules between the folders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmark: install-dev  ## measure speed and coverage, and put the figures into the documents
	$(BIN)/python -m benchmarks.engine --out benchmarks/results/engine.csv
	$(BIN)/python -m benchmarks.floor --out benchmarks/results/floor.csv
	$(BIN)/python -m benchmarks.scaling --out benchmarks/results/scaling.csv
	$(BIN)/python -m benchmarks.coverage --out benchmarks/results/coverage.csv
	$(BIN)/python -m benchmarks.looks --out benchmarks/results/looks.csv
	$(BIN)/python -m benchmarks.aggregate --out benchmarks/results/aggregate.csv
	$(BIN)/python -m benchmarks.report --out benchmarks/results/report.csv
	$(BIN)/python -m benchmarks.tracking --out benchmarks/results/tracking.csv
	$(BIN)/python -m benchmarks.tables --write

lock: install-dev  ## write the versions now installed into constraints.txt
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
