# Two commands do all the set-up on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Where SKAB is on the developers' machines; elsewhere it is found in the cache or downloaded.
ifneq ($(wildcard ../shared/data),)
export TSADBENCH_DATA ?= $(abspath ../shared/data)
endif

.PHONY: run shell test test-long quick lint regress docs tables audits pages leaderboards reproduce bank bench chromium clean

# The main job: DPR-GM, two baselines and the floors on SKAB with one seed, a trial at a time on each core.
run: $(STAMP)
	$(BIN)/tsadbench run
	@echo "tsadbench is installed in $(VENV): run  make shell  or  . $(BIN)/activate  and then for instance  tsadbench list" >&2

# A shell in which `tsadbench` is a command.
shell: $(STAMP)
	@. $(BIN)/activate && exec $${SHELL:-/bin/sh} -i

# Workers with one thread each: numeric libraries with more threads than cores wait for each other. Three for two cores, as
# tests of processes and clusters spend a tenth of the time waiting. tests/conftest.py puts long files first.
test: lint chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore tests/benchmarks -m "not long"

# Slow tests: hostile detectors, clusters, wheels, tutorials, all checks on each network that ships.
test-long: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -m long

# The inner loop: every unit, without browsers, clusters, farms of processes and training.
quick: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -q -m "not (browser or cluster or processes or slow or long or training)"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy -p tsadbench -p tsadbench_detectors -p tsadbench_priors -p tsadbench_protocols

# Runs the cheap detectors of the committed leaderboards again, and cheap variants of the others; fails if a cell left its
# tolerance.
regress: $(STAMP)
	$(BIN)/tsadbench regress --baseline leaderboards --set quick --junit build/regress.xml
	$(BIN)/tsadbench regress --baseline leaderboards/quick --set full --junit build/regress-quick.xml

# The documentation site, into build/docs. The theme's notice that it ends in May 2027 is not about our pages.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/docs/index.html; python -m mkdocs serve shows it, with search" >&2

# The tables and rankings next to the committed records, made from these alone: nothing is run. CI checks that they match
# the committed ones.
tables: $(STAMP)
	$(BIN)/python leaderboards/emit.py

# Audits of all data sets, which they need: their pages, and the findings that ship and that rankings quote.
audits: $(STAMP)
	$(BIN)/python docs/audits/write.py

# All other generated pages, and the generated parts of README and others: from committed records, docstrings and the data sets.
pages: $(STAMP)
	$(BIN)/python leaderboards/paper/reproduce.py
	$(BIN)/python docs/systems/contents.py
	$(BIN)/python docs/studies/prior_sensitivity.py
	$(BIN)/python docs/studies/multiview.py page
	$(BIN)/python docs/studies/thresholds.py
	$(BIN)/python docs/readme.py

# The trials that the committed tables lack, or those in DATA: make leaderboards DATA="tep pumploop". Each is added to the
# records when it ends, so the command can be interrupted. Needs two idle cores.
leaderboards: $(STAMP)
	$(BIN)/python leaderboards/run.py $(DATA)
	OMP_NUM_THREADS=1 $(BIN)/python leaderboards/checks.py
	$(MAKE) tables

# The paper's tables next to ours: half an hour; continues where it stopped. `make pages` writes them from the records alone.
reproduce: $(STAMP)
	$(BIN)/python leaderboards/paper/reproduce.py --run runs/published

# The score bank: a file of scores for each trial of the run stores found here (STORES="runs/a runs/b").
STORES = $(wildcard $(addprefix runs/,strict tep pumploop cranfield gecco2018 causrca asd smd))
bank: $(STAMP)
	$(BIN)/tsadbench bank build $(STORES) --out build/bank

bench: $(STAMP)
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=min,mean,stddev,rounds
	$(BIN)/python -m tests.benchmarks.main_job

# PyPI's torch brings several GB of CUDA packages; one that is there already is kept. aeon (the tests
# compare VUS-PR with it, docs/wrapping-a-library.md wraps its k-means) asks for an older pandas than it needs: without its
# dependencies, except `deprecated`, which its detectors need. Only pip's errors are shown: its warnings are about itself, and
# hide what matters.
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet install
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 14) or sys.exit("expected Python 3.11 to 3.13: make PYTHON=python3.12 ...")'
	@echo "installing into $(VENV), a few minutes the first time (for the small torch: docs/getting-started.md)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip
	@$(PIP) --constraint constraints.txt torch
	@$(PIP) --constraint constraints.txt --editable '.[dev]'
	@$(PIP) --constraint constraints.txt --no-deps aeon==1.6.0 deprecated
	@# Python started in the folder above the clone would take the clone's folder for the package `tsadbench`.
	@$(BIN)/python -c "import sysconfig; open(sysconfig.get_path('purelib') + '/tsadbench.pth', 'w').writelines( \
	    f'{root}\n' for root in ('$(CURDIR)', '$(CURDIR)/detectors', '$(CURDIR)/protocols'))"
	@touch $@

# Debian's package, if we may install it; otherwise browser tests are skipped with a message.
chromium:
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	    && { apt-get install --yes --quiet chromium > /dev/null || { apt-get update --quiet && apt-get install --yes --quiet chromium; }; }; } \
	    || echo "chromium is not here and cannot be installed: the tests in a browser will skip" >&2

clean:
	rm -rf $(VENV) build dist *.egg-info
