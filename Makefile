# `make help` lists the targets. The first one creates .venv with requirements/install.py.
#
#   PYTHON=python3.12   interpreter for .venv (3.11 only if glibc is older than 2.39)
#   WAY=lock|index      installation method, instead of the choice by glibc version
#   ACCELERATOR=cpu|cuda|jax-cuda   what is installed for, instead of what the machine has
#   INSTALLER=pip       install with pip instead of uv
#   ARGS="..."          arguments for pytest (test, test-all) or for the resolver (lock)

PYTHON ?= $(shell command -v python3.11 || command -v python3)
WAY ?= auto
ACCELERATOR ?= auto
INSTALLER ?= uv
ARGS ?=
# One process per core, at most four: each takes 2 GB. Tests of one file share their fixtures, and
# files begin in the order of tests/conftest.py.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
VENV := .venv
STAMP := $(VENV)/regard-install.json
BIN := $(VENV)/bin
SHIM := $(wildcard requirements/tfx-bsl-sql-util/*.py)

INSTALL = requirements/install.py --way $(WAY) --accelerator $(ACCELERATOR) --installer $(INSTALLER)
# What is installed in addition to what running needs.
DEV := $(VENV)/regard-dev.txt
DOCS := $(VENV)/regard-docs.txt
EXTRAS := $(VENV)/regard-extras.txt

.PHONY: help install extras dev run test test-all browser lint docs wheel stats clean lock
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

install: ## create .venv with what running needs
	@test -n "$(PYTHON)" || { echo "make install: python3 not found. Set PYTHON."; exit 1; }
	@$(PYTHON) $(INSTALL) $(VENV)

extras: $(EXTRAS) ## add optional features: JAX, Kubeflow, MLflow, S3, CTranslate2, language checks

dev: $(DEV) ## add what tests and linters need, and the optional features

run: $(STAMP) ## quickstart: generate sample data, train, evaluate and publish a model
	@$(BIN)/regard data generate quickstart
	@$(BIN)/regard run configs/quickstart.yaml

test: $(DEV) browser ## run all tests except the slow ones
	@$(BIN)/python -m pytest -m "not slow" $(PARALLEL) $(ARGS)

test-all: $(DEV) browser ## run all tests, with more random examples
	@$(BIN)/python -m pytest --hypothesis-profile=thorough $(PARALLEL) $(ARGS)

# Browser tests are skipped without a browser; only root can install one.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || [ "$$(id -u)" != 0 ] \
		|| ! command -v apt-get >/dev/null || { echo "Installing Chromium for the browser tests"; \
		apt-get install --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 \
		|| { apt-get update >/dev/null 2>&1; apt-get install --yes --no-install-recommends \
		chromium fonts-dejavu-core >/dev/null 2>&1; } || echo "Chromium could not be installed."; }

lint: $(DEV) ## check with ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(DOCS) ## build the documentation site in build/docs; warnings fail
	@$(BIN)/codespell *.md docs/*.md docs/*/*.md benchmarks/*.md examples/*.md
	@$(BIN)/sphinx-build --conf-dir docs --doctree-dir build/doctrees --fail-on-warning --keep-going \
		--quiet . build/docs
	@echo "The site is in build/docs/index.html."

wheel: $(STAMP) ## build dist/regard-VERSION-py3-none-any.whl
	@rm -rf build/lib  # a file that is no longer there would be in the wheel
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build/lib build/bdist.* regard.egg-info

stats: ## count code lines, modules and test lines
	@python3 benchmarks/stats.py

clean: ## remove .venv, caches and build files, but not the workspace
	@rm -rf $(VENV) $(VENV).log .venv-lock build dist *.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './workspace/*' -prune -exec rm -rf {} +

lock: ## resolve requirements/*.in into the lock files
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv --clear .venv-lock \
		&& .venv-lock/bin/python -m pip install --quiet --quiet --require-hashes -r requirements/uv.txt; }
	@.venv-lock/bin/python requirements/relock.py $(ARGS)

$(STAMP): requirements/lock.txt requirements/cpu.txt requirements/cuda.txt requirements/install.py setup.py $(SHIM)
	@$(MAKE) --no-print-directory install

$(DOCS): $(DEV)  # the reference of the Python API imports optional features

$(VENV)/regard-%.txt: requirements/%.txt $(STAMP)
	@$(BIN)/python $(INSTALL) --add $* $(VENV)
