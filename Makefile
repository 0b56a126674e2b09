# `make demo` and `make test` are all a newcomer needs; the rest is for those who change the code.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Two workers take whole files, those that take longest first (tests/conftest.py): what a file's tests share is made once.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo install install-dev test test-slow test-all test-long test-faults test-containers test-integrations smoke lint docs statistics benchmark lock ranges test-oldest test-newest clean

demo: install  ## run a small real study, print its table, name the report and the dashboard
	$(BIN)/study run demo

install: $(VENV)/installed

install-dev: $(VENV)/installed-dev  ## and what tests, checks and the compilation of GPU kernels need

# Every file is checked against the hash in the lock; nothing is resolved here, and the package is built by what was installed.
LOCK := deploy/lock
PIP_INSTALL := $(BIN)/pip install --quiet --no-deps --no-build-isolation

# torch's CPU build where pip is set up to find it, else PyPI's, which for Linux brings gigabytes of CUDA.
$(VENV)/installed: pyproject.toml $(LOCK)/base.txt $(LOCK)/cluster.txt $(LOCK)/torch.txt $(LOCK)/torch-cpu.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes --requirement $(LOCK)/base.txt --requirement $(LOCK)/cluster.txt
	$(PIP_INSTALL) --require-hashes --requirement $(LOCK)/torch-cpu.txt 2>/dev/null || $(PIP_INSTALL) --require-hashes --requirement $(LOCK)/torch.txt
	$(PIP_INSTALL) --editable .
	touch $@

EXTRA_LOCKS := $(LOCK)/server.txt $(LOCK)/gpu.txt $(LOCK)/dev.txt

$(VENV)/installed-integrations: $(VENV)/installed-dev $(LOCK)/integrations.txt
	$(PIP_INSTALL) --require-hashes --requirement $(LOCK)/integrations.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed $(EXTRA_LOCKS)
	$(PIP_INSTALL) --require-hashes $(EXTRA_LOCKS:%=--requirement %)
	$(BIN)/pip check --quiet
	touch $@

test: install-dev  ## test every law, and a real study end to end, in half an hour
	$(PYTEST) -m "not slow and not faults"

test-slow: install-dev  ## run the rest: real clusters, servers, browsers, benchmarks, all shapes of the contract
	$(PYTEST) -m "slow and not faults and not long" --durations=25

test-all: install-dev  ## run both
	$(PYTEST) -m "not faults and not long"

test-long: install-dev  ## run what takes minutes a test: whole studies of pages, packs of all models, benchmarks with servers
	$(PYTEST) -m long

test-integrations:  ## test study.integrations and its examples on the real libraries, in .venv-integrations
	$(MAKE) VENV=$(VENV)-integrations $(VENV)-integrations/installed-integrations
	$(VENV)-integrations/bin/python -m pytest -W default tests/study/integrations tests/test_examples.py -k "integrations or lightning or huggingface or hydra"

smoke: install-dev  ## bring the whole service up on this machine, and run a small study through submit, kill, resume and report
	PYTHON=$(abspath $(BIN))/python deploy/smoke.sh

test-faults: install-dev  ## strike real studies by real faults, and put what that cost into docs/explanation/faults.md; needs root, half an hour
	STUDY_FAULTS_CSV=tasks/docs/results/faults.csv $(BIN)/python -m pytest -m faults tests/faults
	$(BIN)/python -m tests.faults.table

test-containers: install-dev  ## build the image, bring deploy/compose up with it, and kill every container; needs root and Docker
	$(BIN)/python -m pytest -m faults tests/deploy

lint: install-dev  ## check style, types and the rules between the folders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: install-dev  ## build the documentation site in build/docs; a broken link fails
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c docs . build/docs
	@echo "the site: build/docs/docs/index.html"

statistics: install-dev  ## count how often intervals hold the truth and tests reject, and put it into the documents
	$(BIN)/python -m benchmarks.coverage --out benchmarks/results/coverage.csv
	$(BIN)/python -m benchmarks.restricted --out benchmarks/results/restricted.csv
	$(BIN)/python -m benchmarks.centres --studies 2000 --out benchmarks/results/centres.csv
	$(BIN)/python -m benchmarks.looks --out benchmarks/results/looks.csv
	$(BIN)/python -m benchmarks.precision --out benchmarks/results/precision.csv
	$(BIN)/python -m benchmarks.claims --out benchmarks/results/claims/errors.csv
	$(BIN)/python -m benchmarks.components --out benchmarks/results/components.csv
	$(BIN)/python -m benchmarks.shared_rates --studies 100 --out benchmarks/results/shared_rates.csv
	$(BIN)/python -m benchmarks.pairing --out benchmarks/results/pairing/intervals.csv
	$(BIN)/python -m benchmarks.overlap --out benchmarks/results/overlap/partial.csv
	$(BIN)/python -m benchmarks.winners --studies 2000 --out benchmarks/results/winners.csv
	$(BIN)/python -m benchmarks.tuned --studies 2000 --out benchmarks/results/tuned/laws.csv
	$(BIN)/python -m benchmarks.robust --out benchmarks/results/robust/interquartile-mean.csv
	$(BIN)/python -m benchmarks.tables --write

benchmark: statistics  ## measure speed and coverage, simulate moments, and put the figures into the documents
	$(BIN)/python -m benchmarks.engine --out benchmarks/results/engine.csv
	$(BIN)/python -m benchmarks.engine --models NMU NAC-add NALU --inputs 100 --packs 16 64 --cells 1 9 --out benchmarks/results/engine_peers.csv
	$(BIN)/python -m benchmarks.packed --out benchmarks/results/packed.csv
	$(BIN)/python -m benchmarks.larger --out benchmarks/results/larger.csv
	$(BIN)/python -m benchmarks.presets --out benchmarks/results/presets.csv
	$(BIN)/python -m benchmarks.floor --out benchmarks/results/floor.csv
	$(BIN)/python -m benchmarks.scaling --out benchmarks/results/scaling.csv
	$(BIN)/python -m benchmarks.moments --out benchmarks/results/moments.csv
	$(BIN)/python -m benchmarks.curvature --out benchmarks/results/curvature.csv
	$(BIN)/python -m benchmarks.near_zero --out benchmarks/results/near_zero.csv
	$(BIN)/python -m benchmarks.aggregate --out benchmarks/results/aggregate.csv
	$(BIN)/python -m benchmarks.commands --out benchmarks/results/commands.csv
	$(BIN)/python -m benchmarks.first_use --out benchmarks/results/first_use.csv
	$(BIN)/python -m benchmarks.queue --out benchmarks/results/queue.csv
	$(BIN)/python -m benchmarks.nodes --out benchmarks/results/nodes.csv
	$(BIN)/python -m benchmarks.function --out benchmarks/results/function.csv
	$(BIN)/python -m benchmarks.peers --out benchmarks/results/peers.csv
	$(BIN)/python -m benchmarks.peers --kind program --out benchmarks/results/peers_programs.csv
	$(BIN)/python -m benchmarks.pruning --out benchmarks/results/pruning.csv
	$(BIN)/python -m benchmarks.report --out benchmarks/results/report.csv
	$(BIN)/python -m benchmarks.publishing --out benchmarks/results/publishing.csv
	$(BIN)/python -m benchmarks.tracking --out benchmarks/results/tracking.csv
	$(BIN)/python -m benchmarks.tables --write

lock: install-dev  ## write the locks anew, in deploy/lock, as pyproject.toml asks for; UPGRADE=--upgrade takes the newest versions
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(LOCK)/compile.py $(UPGRADE)

# What pyproject.toml asks for, in the oldest and in the newest versions that it allows, on the Python of the locks. Tools of
# developers are as new as they can be; lifelines is left out of the newest, with the tests that
# compare with it, because it holds pandas below 3.
RANGES := deploy/ranges
RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --no-header --no-annotate pyproject.toml
TEST_RANGE := bin/python -m pytest -W default -n 1 --dist loadfile --no-loadscope-reorder
# GPU packages aren't in the lists.
TEST_RANGE += --ignore tasks/arithmetic/engine/gpu --ignore tests/tasks/arithmetic/engine/gpu
TEST_RANGE += --deselect tests/study/engine/test_registry.py::test_auto_takes_the_first_that_can
# Real clusters, commands of the documents, and searches: slow tests that show most of what other versions break.
END_TO_END := tests/test_examples.py tests/study/cluster tests/study/jobs/test_security.py tests/study/search tests/study/test_faults.py

ranges: install-dev  ## list the oldest and the newest versions that pyproject.toml allows, in deploy/ranges
	$(RESOLVE) --resolution lowest-direct --extra cluster --extra server --extra tensorboard --output-file $(RANGES)/direct.tmp
	$(RESOLVE) --extra cluster --extra server --extra dev --constraint $(RANGES)/direct.tmp --output-file $(RANGES)/oldest.txt
	echo lifelines > $(RANGES)/excluded.tmp
	$(RESOLVE) --upgrade --extra cluster --extra server --extra dev --excludes $(RANGES)/excluded.tmp --output-file $(RANGES)/newest.txt
	rm $(RANGES)/direct.tmp $(RANGES)/excluded.tmp

test-oldest: RANGE := oldest
# They use private interfaces of a newer torch, look for instructions that an older LLVM doesn't choose, or for the layout of
# rich from 14.3 on, which is a space narrower.
test-oldest: TEST_RANGE += --ignore tests/far_device.py --ignore tests/study/engine/packed/test_devices.py \
	--ignore tests/study/stream/test_device.py --ignore tests/tasks/arithmetic/engine/compiled/test_arm64.py \
	--ignore study/console.py --deselect tests/study/reports/test_terminal.py::test_findings_of_the_doctor_are_folded
test-newest: RANGE := newest
test-newest: TEST_RANGE += --ignore tests/study/statistics/test_survival.py --ignore tests/study/statistics/test_restricted_mean.py
test-oldest test-newest: install-dev  ## test against one of these lists, in an environment of its own
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-$(RANGE)
	$(BIN)/uv pip sync --quiet --python $(VENV)-$(RANGE) $(RANGES)/$(RANGE).txt
	$(BIN)/uv pip install --quiet --python $(VENV)-$(RANGE) --no-deps --editable .
	$(VENV)-$(RANGE)/$(TEST_RANGE) -m "not slow and not faults"
	$(VENV)-$(RANGE)/$(TEST_RANGE) -m "slow and not faults and not long" $(END_TO_END)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
