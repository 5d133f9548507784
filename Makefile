# Two commands do all the set-up on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Where SKAB lies on the developers' machines; elsewhere it is found in the cache or downloaded.
ifneq ($(wildcard ../shared/data),)
export TSADBENCH_DATA ?= $(abspath ../shared/data)
endif

.PHONY: run shell test test-long quick imports chromium lint bench bench-gpu bench-large performance reproduce leaderboards leaderboards-published leaderboards-strict leaderboards-skab leaderboards-tep leaderboards-pumploop leaderboards-cranfield leaderboards-gecco2018 leaderboards-causrca leaderboards-asd leaderboards-smd audits pumploop contents readme screenshots regress comparisons bank diagnostics root-cause calibration own-detector own-detector-look rules coverage smoothing sizes faithful peers tuning leaderboards-adapters leaderboards-quick tables checks site speed clean ci-slow ci-lowest ci-newest ci-walks

# The main job: DPR-GM, two baselines and the floors on SKAB with one seed and two threads.
run: $(STAMP)
	$(BIN)/tsadbench run --threads 2
	@echo "tsadbench is installed in $(VENV): run  make shell  or  . $(BIN)/activate  and then for instance  tsadbench list" >&2

# A shell in which `tsadbench` is a command.
shell: $(STAMP)
	@. $(BIN)/activate && exec $${SHELL:-/bin/sh} -i

# Workers with one thread each: numeric libraries with more threads than cores wait for each other. Three for two cores, as
# tests of processes and clusters spend a tenth of the time waiting. tests/conftest.py puts long files first.
test: lint chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not long"

# What CI has no time for: all checks on each network that ships.
test-long: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -m long

# Beside what CI runs (.ci/run): the core and the tutorials as notebooks with the lowest versions that pyproject.toml allows
# and with the newest that there are, the tutorials at their full size, and the long tests.
ci-slow: ci-lowest ci-newest ci-walks test-long

# Always in a new environment: an old one would keep what was newest once. torch is an exception, and has the version of
# constraints.txt in both: others bring several GB of CUDA packages.
CORE = tests/analysis tests/api tests/base tests/cli tests/datasets tests/detectors tests/execution tests/leaderboard \
    tests/protocols tests/reporting tests/results tests/sandbox tests/serving tests/testing tests/tuning tests/utils
NOT_QUICK = browser or cluster or processes or slow or long or training
MATRIX = deep,models,parquet,pyod,r,report,stats,tune
ci-lowest: CONSTRAINT = --constraint constraints-lowest.txt
ci-lowest ci-newest: ci-%:
	$(PYTHON) -m venv --clear build/$*
	build/$*/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt torch
	build/$*/bin/python -m pip install --quiet --quiet --disable-pip-version-check $(CONSTRAINT) --editable '.[$(MATRIX)]' \
	    anthropic dask distributed hypothesis ipykernel nbclient nbformat playwright pypdf pytest pytest-benchmark \
	    pytest-xdist ruff
	OMP_NUM_THREADS=1 build/$*/bin/python -m pytest -n 2 --dist load -q -p no:cacheprovider -m "not ($(NOT_QUICK))" $(CORE)
	OMP_NUM_THREADS=1 build/$*/bin/python -m pytest -n 2 --dist load -q -p no:cacheprovider -m long tests/test_notebooks.py

ci-walks: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -m long tests/test_tutorials.py

.PHONY: ci-wheel release-check
# The wheel in clean environments, with the lowest and the newest versions of what it requires, and under a stranger's mypy.
# These tests are among the long ones, thus part of ci-slow. WHEEL=FILE tries that one in place of one built here.
ci-wheel: $(STAMP)
	OMP_NUM_THREADS=1 TSADBENCH_WHEEL=$(abspath $(WHEEL)) $(BIN)/python -m pytest -n 2 --dist load -m long tests/test_installed_wheel.py

# What the release workflow runs before it publishes: build, check the archives, the citation, versions and addresses.
# There RELEASE gives the tag and the repository's address besides (docs/release.py).
release-check:
	$(PYTHON) -m venv --clear build/release
	build/release/bin/python -m pip install --quiet --quiet --upgrade pip
	build/release/bin/python -m pip install --quiet --quiet --disable-pip-version-check --group release
	rm -rf dist
	build/release/bin/python -m build --outdir dist > build/release/build.log 2>&1 \
	    || { tail -20 build/release/build.log >&2; exit 1; }
	build/release/bin/twine check --strict dist/*
	build/release/bin/check-wheel-contents dist/*.whl
	build/release/bin/cffconvert --validate
	build/release/bin/python docs/release.py $(RELEASE)

# The inner loop: every unit, without browsers, clusters, farms of processes and training.
quick: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist load -q -m "not ($(NOT_QUICK))"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy -p tsadbench -p tsadbench_detectors -p tsadbench_protocols

# The second command compares the networks' trials with those of the version before they were made faster, by one epoch
# of training each; docs/performance.md has whole trials (make performance).
bench: $(STAMP)
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=min,mean,stddev,rounds
	$(BIN)/python docs/performance/measure.py --epochs 1
	$(BIN)/python docs/performance/measure.py --overhead

# Every network on cuda beside cpu: seconds of a fit, and metrics beside the seeds' spread. Without a GPU it says so.
bench-gpu: $(STAMP)
	$(BIN)/python docs/performance/gpu.py --seeds 5

# A fit at plant scale, bounded by max_steps: its CPU seconds, memory, and the share of the windows that it sees.
bench-large: $(STAMP)
	OMP_WAIT_POLICY=passive $(BIN)/python docs/performance/large_training.py --max-steps 1000 --threads 2

# The table in docs/performance.md: whole trials before and now, their floor by arithmetic, and where the time goes.
performance: $(STAMP)
	$(BIN)/python docs/performance/measure.py --write
	$(BIN)/python docs/performance/measure.py --overhead --write

# Every committed number: the paper's tables beside ours, then the leaderboards of three protocols. Each can be
# interrupted and goes on where it was; two fits at a time, one thread each.
FITS = --threads 1 --jobs 2 --no-contributions --format csv
CLASSICS = pca dynamic-pca cva arima ocsvm lof
STATISTICS = multiview multiview[adaptive=on] t2 t2[mean=10] t2-q mset isolation-forest $(CLASSICS)
# untrained is a floor that `run` does not add by itself: it needs the extra deep.
NETWORKS = untrained dprgm dprgm[node_weights=off] gdn gdn[quirks=on] grelen mtad-gat conv-ae vanilla-ae vanilla-lstm lstm-ae lstm-vae mscred
# Those that the paper names without comparing with them: fewer seeds.
NAMED = anomaly-transformer catch deep-svdd dvgcrn ganf gcad lstm-ndt omnianomaly thoc timesnet tranad usad
ALL = $(NETWORKS:%=--detector '%') $(STATISTICS:%=--detector '%')
# Slow if there are many sensors.
SLOW = grelen mtad-gat mscred
OTHERS = $(patsubst %,--detector '%',$(filter-out grelen mtad-gat mscred gdn[%,$(NETWORKS)) $(STATISTICS))

# Needs the leaderboards under strict and skab for two of its sections: those that are committed will do.
reproduce: $(STAMP)
	$(BIN)/tsadbench reproduce --jobs 2 --out runs/published

leaderboards: leaderboards-strict leaderboards-skab reproduce leaderboards-published leaderboards-tep leaderboards-pumploop \
    leaderboards-cranfield leaderboards-gecco2018 leaderboards-causrca leaderboards-asd leaderboards-smd

leaderboards-published leaderboards-strict: leaderboards-%: $(STAMP)
	$(BIN)/tsadbench run $(ALL) --protocol $* --seeds 5 $(FITS) --out runs/$* > /dev/null
	$(BIN)/tsadbench run $(NAMED:%=--detector '%') --no-floors --protocol $* --seeds $(NAMED_SEEDS) $(FITS) --out runs/$* > /dev/null
	$(BIN)/tsadbench leaderboard runs/$* --write leaderboards
NAMED_SEEDS = 1
leaderboards-strict: NAMED_SEEDS = 3
leaderboards-published: NAMED_SEEDS = 2

# 34 fits a trial: the networks with one seed, and all others with five. The two slowest are held to 150 steps a fit.
SKAB_NETWORKS = $(filter-out grelen mtad-gat,$(NETWORKS) $(NAMED)) grelen[max_steps=150] mtad-gat[max_steps=150]
leaderboards-skab: $(STAMP)
	$(BIN)/tsadbench run $(SKAB_NETWORKS:%=--detector '%') --no-floors --protocol skab --seeds 1 $(FITS) --out runs/skab > /dev/null
	$(BIN)/tsadbench run $(STATISTICS:%=--detector '%') --protocol skab --seeds 5 $(FITS) --out runs/skab > /dev/null
	$(BIN)/tsadbench leaderboard runs/skab --write leaderboards

# The other data sets, under strict, one command each, under an hour on two idle cores; GDN's published quirk is only of
# interest beside the paper's tables. The slow networks have fewer seeds, and where there are many sensors, long
# recordings or many machines, steps are bounded: the labels say so (max_steps). Contributions are kept, but for the slow
# ones: docs/diagnostics.md scores them. The committed table of smd lacks mscred: its scores alone take twenty minutes.
BOUNDED = dprgm gdn conv-ae vanilla-ae vanilla-lstm lstm-ae lstm-vae
leaderboards-tep leaderboards-pumploop leaderboards-cranfield leaderboards-gecco2018 leaderboards-causrca leaderboards-asd leaderboards-smd: leaderboards-%: $(STAMP)
	$(BIN)/tsadbench run $(OTHERS) $(if $(STEPS),$(BOUNDED:%=--set %.max_steps=$(STEPS))) --dataset $* --seeds $(SEEDS) $(filter-out --no-contributions,$(FITS)) --out runs/$* > /dev/null
	$(BIN)/tsadbench run $(SLOW:%=--detector '%') --no-floors --dataset $* --seeds $(SLOW_SEEDS) $(FITS) --out runs/$* > /dev/null
	$(BIN)/tsadbench run $(NAMED:%=--detector '%') $(if $(STEPS),$(NAMED:%=--set %.max_steps=$(STEPS))) --no-floors --dataset $* --seeds $(NAMED_SEEDS) $(FITS) --out runs/$* > /dev/null
	$(BIN)/tsadbench leaderboard runs/$* --write leaderboards $(SPLITS:%=--split %)
SPLITS = overall
leaderboards-tep: SPLITS = overall detectable
leaderboards-tep: SLOW = grelen mtad-gat mscred[max_steps=100]
leaderboards-tep leaderboards-cranfield leaderboards-gecco2018 leaderboards-causrca leaderboards-asd leaderboards-smd: SLOW_SEEDS = 1
leaderboards-tep: SEEDS = 2
leaderboards-cranfield: SEEDS = 2
leaderboards-pumploop: SLOW_SEEDS = 2
leaderboards-pumploop: SEEDS = 3
leaderboards-gecco2018 leaderboards-causrca leaderboards-asd leaderboards-smd: SEEDS = 1
leaderboards-causrca: STEPS = 1000
leaderboards-asd leaderboards-smd: STEPS = 200
leaderboards-causrca leaderboards-asd leaderboards-smd: SLOW = grelen[max_steps=100] mtad-gat[max_steps=100] mscred[max_steps=100]

# Detectors of PyOD and scikit-learn by name (docs/adapters.md), in a folder of their own: no table that ships holds them.
# PyOD's networks take minutes a seed and have one.
PYOD = ABOD CBLOF COPOD ECOD GMM HBOS HDBSCAN IForest INNE KDE KNN KNN[window=10] LODA LOF LOF[window=10] MCD OCSVM PCA \
    QMCD Sampling
PYOD_NETWORKS = AutoEncoder DeepSVDD LUNAR SO_GAAL
SKLEARN = EllipticEnvelope IsolationForest LocalOutlierFactor OneClassSVM SGDOneClassSVM
ADAPTERS = --dataset skab --protocol strict $(FITS) --out runs/adapters
leaderboards-adapters: $(STAMP)
	$(BIN)/tsadbench run $(PYOD_NETWORKS:%=--detector 'pyod:%') --no-floors --seeds 1 $(ADAPTERS) > /dev/null
	$(BIN)/tsadbench run $(PYOD:%=--detector 'pyod:%') $(SKLEARN:%=--detector 'sklearn:%') --seeds 5 $(ADAPTERS) > /dev/null
	$(BIN)/tsadbench leaderboard runs/adapters --split overall --write leaderboards/pyod

# What `make regress` runs of the detectors that cost more than half a second: twenty steps of training, two seeds. The
# scores of such networks mean little; that they stay the same is the point. A folder of its own, as above.
CHEAP = --dataset pumploop --protocol strict --seeds 2 --no-floors $(FITS) --out runs/quick
leaderboards-quick: $(STAMP)
	$(BIN)/tsadbench run $(NAMED:%=--detector '%[max_steps=20]') $(CLASSICS:%=--detector '%') $(CHEAP) > /dev/null
	$(BIN)/tsadbench leaderboard runs/quick --split overall --write leaderboards/quick

# The example of quality against speed in docs/figures.md: a minute or two.
speed: $(STAMP)
	$(BIN)/tsadbench run -d dprgm -d gdn -d vanilla-ae -d lstm-vae $(STATISTICS:%=-d '%') --split overall --seeds 1 --no-contributions --out runs/speed > /dev/null
	$(BIN)/tsadbench plot speed runs/speed --out docs/figures/speed.svg

# The tables and rankings that lie beside committed records, from these alone: nothing is run. CI checks that they are
# what is committed.
tables: $(STAMP)
	$(BIN)/python leaderboards/emit.py
	$(BIN)/tsadbench rank leaderboards --suite all --suite plants --suite servers --write leaderboards/suites --format csv > /dev/null

# The score bank: the scores of the trials of run stores that are here, a file each (STORES="runs/a runs/b").
STORES = $(wildcard $(addprefix runs/,strict tep pumploop cranfield gecco2018 causrca asd smd))
bank: $(STAMP)
	$(BIN)/tsadbench bank build $(STORES) --out build/bank

# Reports of all checks for the detectors of the committed tables, as far as they are missing: a quarter of an hour on one core.
# `make tables` then marks the rows whose detectors fail, or have none.
checks: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python leaderboards/checks.py

# The leaderboards as static pages, from the committed tables and the score bank if `make bank` has built it (docs/site.md).
site: $(STAMP)
	$(BIN)/tsadbench site --out build/site --tables leaderboards --docs docs/index.html $(if $(wildcard build/bank),--bank build/bank)

# The picture of docs/architecture.md: who imports whom. Fails if an arrow points upwards.
imports: $(STAMP)
	$(BIN)/python docs/architecture/draw.py

# What the data sets themselves give away: docs/audits.
audits: $(STAMP)
	$(BIN)/python docs/audits/write.py

# How hard each of pumploop's faults is, from its simulator: docs/systems/pumploop.md.
pumploop: $(STAMP)
	$(BIN)/python docs/systems/pumploop.py

# The tables and figures in README.md and other pages, from the committed leaderboards, the pages in docs/ and the
# list of commands.
readme: $(STAMP)
	$(BIN)/python docs/readme.py --write

# What the data sets contain, for the tables on their pages; make readme fills these.
contents: $(STAMP)
	$(BIN)/python docs/systems/contents.py

# The screenshots in README.md and docs/report.md: trials that keep contributions, which the leaderboards' do not.
screenshots: $(STAMP) chromium
	$(BIN)/tsadbench run --detector dprgm $(STATISTICS:%=--detector '%') --seeds 2 --jobs 2 --out runs/report > /dev/null
	$(BIN)/python docs/report/screenshots.py runs/report

# The example of docs/comparing.md, from the store behind the leaderboard under strict.
comparisons: $(STAMP)
	$(BIN)/tsadbench compare runs/strict dprgm t2-q max-z sensor-range --format markdown \
	    --figure docs/comparisons/skab-strict.svg > docs/comparisons/skab-strict.md

# Operational numbers, VUS-PR and affiliation of the stored trials: docs/diagnostics.md.
diagnostics: $(STAMP)
	$(BIN)/tsadbench leaderboard runs/strict --split overall --split other --diagnostics all --format markdown > docs/diagnostics/skab.md
	$(BIN)/tsadbench leaderboard runs/pumploop --split overall --diagnostics all --format markdown > docs/diagnostics/pumploop.md

# Whether contributions blame the sensors that events began in, from stores that kept them: docs/diagnostics.md.
root-cause: $(STAMP)
	for name in asd smd causrca pumploop tep; do \
	    $(BIN)/tsadbench leaderboard runs/$$name --split overall --diagnostics root-cause --format markdown \
	        > docs/diagnostics/root-cause-$$name.md || exit 1; \
	done

# Which normal rows set strict's threshold: docs/studies/calibration.md.
calibration: $(STAMP)
	$(BIN)/python docs/studies/calibration.py --dataset skab --dataset pumploop --dataset tep

# Whether the calibration report's intervals hold the true rate of false alarms: docs/studies/coverage.md.
coverage: $(STAMP)
	$(BIN)/python docs/studies/coverage.py --repetitions 200

# How the detector of our own was chosen (training rows alone), and what each of its views adds on test rows:
# docs/studies/own-detector.md.
OWN_VIEWS = level range relation forecast movement
without = multiview[views=$(subst $(space),+,$(filter-out $(1),$(OWN_VIEWS)))]
empty =
space = $(empty) $(empty)
own-detector: $(STAMP)
	$(BIN)/python docs/studies/own_detector.py $(DATASETS:%=--dataset %)

own-detector-look: $(STAMP)
	for name in $(DATASETS); do \
	    $(BIN)/tsadbench run --detector multiview $(foreach view,$(OWN_VIEWS),--detector '$(call without,$(view))') \
	        --dataset $$name --no-floors $(FITS) --out runs/own/$$name > /dev/null || exit 1; \
	    $(BIN)/tsadbench run --detector multiview --set strict.calibration=held-out \
	        --dataset $$name --no-floors $(FITS) --out runs/own-held-out/$$name > /dev/null || exit 1; \
	done
	$(BIN)/python docs/studies/own_detector_look.py $(DATASETS:%=--store runs/own/% --held-out runs/own-held-out/%)
	$(BIN)/python docs/studies/own_detector.py
DATASETS = skab tep pumploop cranfield gecco2018 asd smd causrca

# Who gains if all scores are averaged alike, from the stores behind the leaderboards: docs/studies/smoothing.md.
smoothing: $(STAMP)
	$(BIN)/python docs/studies/smoothing.py --store runs/strict --store runs/tep --store runs/pumploop

# What version 2 of the rules changed in the committed tables: docs/studies/rules.md.
rules: $(STAMP)
	$(BIN)/python docs/studies/rules.py

# The papers' figures under their protocol, and why rows are low: docs/studies/faithful.md. It goes on where it was
# interrupted.
faithful: $(STAMP)
	$(BIN)/python docs/studies/faithful.py

# Detectors beside those of TSB-AD 1.5, which is installed into build/tsb-ad: docs/performance/peers.md.
peers: $(STAMP)
	$(BIN)/python docs/performance/peers.py

# What networks lose by being smaller than published: docs/studies/sizes.md. It goes on where it was interrupted.
sizes: $(STAMP)
	$(BIN)/python docs/studies/sizes.py

# Does tuning without labels help? Studies and runs are kept: it goes on where it was. One point at a time, so that a
# search hangs on its seed alone; to use several cores, start it for one data set each first (--dataset skab, ...).
tuning: $(STAMP)
	$(BIN)/tsadbench tune report --out runs/tuning/studies --runs runs/tuning/trials --write runs/tuning/cheap.md
	$(BIN)/tsadbench tune report --detector 'dprgm[backbone=sage,batch_size=256,epochs=4]' --objective injection \
	    --out runs/tuning/studies --runs runs/tuning/trials --write runs/tuning/dprgm.md

# The cheap detectors of the committed leaderboards again, and cheap variants of the others: fails where a cell left its
# tolerance. Not on causrca: most of its sensors are switches, whose rows repeat, and the last bits of t2's inverse, which
# differ from processor to processor, decide the order of such rows (by up to 1e-5 in AUPRC).
regress: $(STAMP)
	$(BIN)/tsadbench regress --baseline leaderboards --set quick --jobs 2 --junit build/regress.xml \
	    $(patsubst %,--dataset %,skab tep pumploop cranfield gecco2018 asd smd)
	$(BIN)/tsadbench regress --baseline leaderboards/quick --set full --jobs 2 --junit build/regress-quick.xml

# torch first and alone: a plain `pip install torch` would take several GB of CUDA packages. aeon, whose VUS-PR is the
# oracle of ours and whose k-means docs/wrapping-a-library.md wraps, asks for an older pandas than it needs: alone too, with
# the one package that its detectors need and ours do not. Only pip's errors are shown: its warnings are about itself, and
# hide what matters.
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet install
$(STAMP): pyproject.toml constraints.txt
	@echo "installing into $(VENV), a few minutes the first time" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip
	@$(PIP) --constraint constraints.txt torch
	@$(PIP) --constraint constraints.txt --editable '.[dev]'
	@$(PIP) --constraint constraints.txt --no-deps aeon==1.6.0 deprecated
	@touch $@

# The documentation site, into build/docs. The theme's own notice, that it ends in May 2027, is no warning about ours.
.PHONY: docs
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/docs/index.html; python -m mkdocs serve shows it, with search" >&2

# Debian's, where we may install it; elsewhere the browser's tests say that they skip.
chromium:
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	    && { apt-get install --yes --quiet chromium > /dev/null || { apt-get update --quiet && apt-get install --yes --quiet chromium; }; }; } \
	    || echo "chromium is not here and cannot be installed: the tests in a browser will skip" >&2

clean:
	rm -rf $(VENV) build dist *.egg-info
