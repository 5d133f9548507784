# Two commands do all the set-up on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Where SKAB lies on the developers' machines; elsewhere it is found in the cache or downloaded.
ifneq ($(wildcard ../shared/data),)
export TSADBENCH_DATA ?= $(abspath ../shared/data)
endif

.PHONY: run test check lint bench leaderboards clean

# The main job: DPR-GM on SKAB with one seed and two threads, the floors beside it.
run: $(STAMP)
	$(BIN)/tsadbench run --detector dprgm --split overall --seeds 1 --threads 2

test: lint
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p tsadbench -p tsadbench_detectors -p tsadbench_protocols

bench: $(STAMP)
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=min,mean,stddev,rounds

# Every committed table: both protocols, four splits, seeds 0-4, one thread a trial.
DETECTORS = dprgm t2 t2-q isolation-forest
leaderboards: $(STAMP)
	for protocol in published strict; do \
	    $(BIN)/tsadbench run $(DETECTORS:%=--detector %) --protocol $$protocol --seeds 5 --threads 1 --jobs 2 \
	        --out runs/leaderboards --format csv > /dev/null || exit 1; \
	done
	$(BIN)/tsadbench leaderboard runs/leaderboards --write leaderboards

# torch first and alone: a plain `pip install torch` would take several GB of CUDA packages.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
