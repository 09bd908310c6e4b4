PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that run tests: one more than two cores, because many tests wait for another program.
WORKERS ?= 3
export OMP_NUM_THREADS ?= 1

.PHONY: help install install-dev run test test-all test-kernels test-slurm test-ray faults lock audit wheels lint format tables reproduce-tables site docs bench dist clean

help:  ## show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 18

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "orthobench needs Python 3.11 or later, and $(PYTHON) is " + sys.version.split()[0] + ": give another one, as in make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
ifdef LOCKED  # every package by its hash, and nothing else; it needs the public registry
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
else
	@$(BIN)/python scripts/install.py --quiet --disable-pip-version-check -c constraints.txt -e .
endif
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(BIN)/python scripts/install.py --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.installed-kernels: $(VENV)/.installed-dev
	@$(BIN)/python scripts/install.py --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,kernels]'
	@touch $@

$(VENV)/.installed-clusters: $(VENV)/.installed-dev
	@$(BIN)/python scripts/install.py --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,slurm,ray]'
	@touch $@

install: $(VENV)/.installed  ## a virtual environment in .venv with everything a run needs; LOCKED=1 checks hashes

install-dev: $(VENV)/.installed-dev  ## the same, with what the tests need

run: install  ## the main job: scoRNN on the copying task, about a minute on one core
	$(BIN)/python -m orthobench model=scornn task=copying T=200 trainer.max_steps=2000

test: install-dev  ## the tests but for the slow ones, about five minutes on two cores
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not faults and not slow"

test-all: install-dev  ## the slow tests too; with ORTHOBENCH_DATA set to a folder of real data sets those of real data too
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-kernels: $(VENV)/.installed-kernels  ## the GPU kernels of engine=triton, interpreted on the CPU, and compiled for three GPUs
	TRITON_INTERPRET=1 $(BIN)/python -m pytest tests/scan/test_triton*.py tests/scan/test_compiled.py -n $(WORKERS) --dist worksteal

test-slurm: $(VENV)/.installed-clusters  ## runs on a real Slurm of this machine, about fifteen minutes; as root, with slurm-wlm and munge
	@$(BIN)/python -m tests.clusters.slurm_cluster --check
	ORTHOBENCH_CLUSTERS=1 $(BIN)/python -m pytest tests/clusters/test_slurm.py

test-ray: $(VENV)/.installed-clusters  ## runs on a real Ray cluster of three nodes on this machine, about five minutes; MANY=1000 runs
	ORTHOBENCH_CLUSTERS=1 ORTHOBENCH_MANY=$(or $(MANY),40) $(BIN)/python -m pytest tests/clusters/test_ray.py

faults: install-dev  ## kills, full disks, flipped bits, signals, failing sweeps: see docs/explanation/reliability.md; LONG=1 for more
	$(BIN)/python -m pytest tests/faults -m "faults or not faults" -n $(WORKERS) --dist worksteal

lock:  ## write requirements.lock anew, with uv
	uv pip compile pyproject.toml --all-extras -c constraints.txt --universal --python-version 3.11 --generate-hashes \
	  --no-header --quiet -o requirements.lock
	sed -i.bak '1i # Every package and its hashes for Linux and macOS, from pyproject.toml and constraints.txt: made by `make lock`.' \
	  requirements.lock && rm requirements.lock.bak

audit:  ## known vulnerabilities of what requirements.lock names; fails where pypi.org cannot be asked
	@$(PYTHON) -m venv $(VENV)-audit
	@$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check pip-audit || \
	  { echo "not audited: pip-audit cannot be installed, because no package registry is reachable" >&2; exit 3; }
	@$(VENV)-audit/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

# Pure Python, so they fit any machine; OmegaConf and Hydra need this version of ANTLR's runtime.
WHEELS = hydra-core omegaconf 'antlr4-python3-runtime==4.9.*' torchtext pooch
wheels: install  ## for a GPU machine without a network: what images with torch and Lightning lack, into build/wheels
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -c constraints.txt -w build/wheels $(WHEELS)

lint: install-dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: install-dev  ## put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tables: install  ## write results/tables from what is recorded
	$(BIN)/python -m orthobench tables

PAPERS ?= all
PRESET ?= full
JOBS ?= 1
reproduce-tables: install  ## run the published tables: PAPERS="scornn sgornn/table2" PRESET=short BUDGET=2h JOBS=4
	$(BIN)/python -m orthobench reproduce $(PAPERS) --preset $(PRESET) --jobs $(JOBS) $(if $(BUDGET),--budget $(BUDGET))

$(VENV)/.installed-site: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@touch $@

site: $(VENV)/.installed-site  ## write results/site, pages of everything that is recorded
	$(BIN)/python -m orthobench site

$(VENV)/.installed-docs: $(VENV)/.installed-site
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site,docs]'
	@touch $@

docs: $(VENV)/.installed-docs  ## the documentation and the site in one folder, results/site; runs the quickstart notebook
	$(BIN)/python -m sphinx -q -b html -d build/doctrees docs results/site/docs
	@rm -rf results/site/jupyter_execute
	$(BIN)/python -m orthobench site

bench: install  ## the speed table of this machine, into results/bench; ARGS=--quick for two minutes
	$(BIN)/python -m orthobench bench $(ARGS)

dist: install-dev  ## the sdist, and the wheel that is made from it, into dist; tested from another folder
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	ORTHOBENCH_DIST=dist $(BIN)/python -m pytest -q tests/test_wheel.py

clean:  ## remove what install and the tests made
	rm -rf $(VENV) $(VENV)-audit .pytest_cache .ruff_cache build dist
