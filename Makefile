# Two commands matter: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/sh
PY := .venv/bin/python
CONTEXT ?=
# What needs a node waits most of the time, so there are three processes with one (tests/support/spread.py),
# one with an API server, and one that computes beside them, on however few cores.
SPREAD = --dist loadscope --no-loadscope-reorder
CORES = -n auto --maxprocesses 4
# Some systems set PYTHONDONTWRITEBYTECODE. Each of some hundred processes would then compile every
# module again, a second of CPU each. One cache folder keeps the bytecode apart from the sources.
export PYTHONDONTWRITEBYTECODE =
export PYTHONPYCACHEPREFIX = $(CURDIR)/__pycache__

.PHONY: help venv check lint wording types layers bytecode unit model crds reference dashboards manifests test parts storm day versions cert-manager open-kruise plans fuzz demo down docs bench bench-check release lock clean

help: ## this list
	@grep -hE '^[a-z.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

venv:
	@scripts/bootstrap

check: venv ## lint, types, import layers, generated files, unit tests (under a minute)
	@$(MAKE) --no-print-directory --output-sync -j2 lint types layers unit

lint: venv
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	@PYTHONPATH=tests $(PY) -m wording

wording: venv ## list the words to avoid that are left (BELOW=src/penstock/kube)
	@PYTHONPATH=tests $(PY) -m wording --list $(BELOW)

types: venv
	.venv/bin/pyright

layers: venv
	.venv/bin/lint-imports
	$(PY) -m penstock.api.crd --check deploy/crds

unit: venv
	.venv/bin/pytest -q $(CORES) $(SPREAD) tests/unit

model: venv ## the promises in simulated time: state machines, races, a few fault plans
	PENSTOCK_PLANS=$${PENSTOCK_PLANS:-10} .venv/bin/pytest -q $(CORES) $(SPREAD) tests/model

crds: venv ## write deploy/crds from the typed kinds
	$(PY) -m penstock.api.crd deploy/crds

reference: venv ## write docs/reference from the code
	PYTHONPATH=tests $(PY) -m reference

dashboards: venv ## write dashboards and alert rules of charts/penstock-monitoring
	PYTHONPATH=tests $(PY) -m dashboards

manifests: venv ## write deploy/*.yaml from the operator's charts (Helm is compiled the first time)
	$(PY) -m penstock.local.charts deploy/operator.yaml deploy/soperator.yaml

install.yaml: deploy/operator.yaml $(wildcard deploy/crds/*.yaml) ## kinds and operator in one file, for kubectl
	@for file in $(sort $(wildcard deploy/crds/*.yaml)) deploy/operator.yaml; do \
		echo '---'; cat "$$file"; done >$@

# kubectl and helm run some thousand times and end soon; less garbage collection saves a quarter of their CPU.
test: venv ## everything: lint, types, layers, unit, real API server, real Slurm on the built-in node
	@$(MAKE) --no-print-directory --output-sync -j2 lint types layers bytecode
	@$(MAKE) --no-print-directory parts
	GOGC=400 PYTHONPATH=tests $(PY) -m rerun -n 5 $(SPREAD) tests --durations=20

# Compile once, not in each of five processes that collect tests at the same time. The run reports failures.
bytecode: venv
	@.venv/bin/pytest --collect-only -q tests >/dev/null || true

# With an empty cache, compiling takes longer than a test's timeout, so it is done first. Nodes need root.
parts: venv ## compile and fetch what nodes are made of, where the cache lacks it
	@[ "$$(id -u)" != 0 ] || .venv/bin/penstock local prepare

storm: venv ## kill and freeze everything at random while jobs flow (MINUTES=30 SEED=1)
	PENSTOCK_STORM_MINUTES=$(or $(MINUTES),30) $(if $(SEED),PENSTOCK_SEED=$(SEED)) .venv/bin/pytest -s tests/e2e/test_storm.py

day: venv ## a SlurmCluster's day: jobs, checks, drains, maintenance and kills, MINUTES=10 long
	PENSTOCK_DAY_MINUTES=$(or $(MINUTES),10) .venv/bin/pytest -s tests/e2e/day.py

versions: venv ## groups of scenarios on each Kubernetes and Slurm, resumed (PAIR=1.35/26.05: only that one)
	GOGC=400 PYTHONPATH=tests $(PY) -m versions $(PAIR)

cert-manager: venv ## the chart's certificate by a real cert-manager, which is compiled for it (some ten minutes)
	.venv/bin/pytest -s tests/e2e/cert_manager.py

open-kruise: venv ## the switch from soperator beside OpenKruise's controller, compiled for it (some ten minutes)
	.venv/bin/pytest -s tests/e2e/open_kruise.py

plans: venv ## play fault plans on all cores, also of SlurmClusters (COUNT=10000 SEED=1)
	PYTHONPATH=tests $(PY) -m fault_plans --seed $${SEED:-1} --count $${COUNT:-1000} --keep-going; kept=$$?; \
	PYTHONPATH=tests $(PY) -m fault_plans --nebius --seed $${SEED:-1} --count $$((($${COUNT:-1000} + 3) / 4)) \
		--keep-going || kept=1; \
	PYTHONPATH=tests $(PY) -m fault_plans --nebius-left --seed $${SEED:-1} --count $$((($${COUNT:-1000} + 15) / 16)) \
		--keep-going || kept=1; \
	PYTHONPATH=tests $(PY) -m fault_plans --together --seed $${SEED:-1} --count $$((($${COUNT:-1000} + 31) / 32)) \
		--keep-going && exit $$kept

fuzz: venv ## search inputs of strangers that break a reader (SECONDS=60 for each of 15, TARGET=admission)
	cd tests && ../$(PY) -m fuzz --seconds $(or $(SECONDS),60) $(TARGET)

demo: venv ## from nothing to a Slurm job's output (CLUSTER=slurmcluster, CONTEXT=name for a cluster of yours, RESET=1)
	.venv/bin/penstock demo up $(if $(CLUSTER),--cluster $(CLUSTER)) $(if $(CONTEXT),--context $(CONTEXT)) $(if $(REGISTRY),--registry $(REGISTRY)) \
		$(if $(RESET),--reset)

down: venv ## stop and remove what demo made (CLUSTER=slurmcluster: only that one)
	.venv/bin/penstock demo down $(if $(CLUSTER),--cluster $(CLUSTER)) $(if $(CONTEXT),--context $(CONTEXT))

# Pages of this repository and installed packages are all it reads: no network.
docs: venv ## the site of all pages, in site/ (warnings are errors)
	$(PY) -m sphinx -q -W --keep-going -c docs/site -d site/.cache -b html . site
	@echo "open site/docs/index.html"

bench: venv ## the figures beside their limits (FULL=1: up to 5000 workers)
	$(PY) -m bench $(if $(FULL),--full)

bench-check: venv ## measure, and fail when a figure is over its limit
	$(PY) -m bench --check $(if $(FULL),--full)

# The time of files is that of the commit: two runs of one commit write the same bytes.
release: venv parts ## what a release page has, in dist/: wheel, charts, manifests, images, SBOMs, checksums
	$(PY) -m release dist

lock: venv ## resolve requirements/ again from pyproject.toml
	scripts/lock

clean:
	rm -rf .venv site __pycache__ .pytest_cache .ruff_cache .hypothesis
