# `make help` lists the targets. Each makes .venv first, once; requirements/install.py says how.
#
#   PYTHON=python3.12   the interpreter to make .venv with (glibc < 2.39: 3.11 only)
#   WAY=lock|index      which way to install, where the choice by glibc does not suit
#   ARGS="..."          handed to pytest (test, test-all) or to the resolver (lock)

PYTHON ?= $(shell command -v python3.11 || command -v python3)
WAY ?= auto
ARGS ?=
# A process a core, four at most, for each takes 2 GB; the tests of a file share their fixtures.
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist loadfile
VENV := .venv
STAMP := $(VENV)/regard-install.json
BIN := $(VENV)/bin
SHIM := $(wildcard requirements/tfx-bsl-sql-util/*.py)

.PHONY: help install run test test-all browser lint clean lock
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

install: $(STAMP) ## make .venv with everything in it

run: $(STAMP) ## the quickstart: generate text pairs, train, evaluate, push
	@$(BIN)/regard data generate quickstart
	@$(BIN)/regard run configs/quickstart.yaml

test: $(STAMP) browser ## all tests but the slow ones
	@$(BIN)/python -m pytest -m "not slow" $(SIDE_BY_SIDE) $(ARGS)

test-all: $(STAMP) browser ## all tests
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

# The tests of the page skip where there is none; only an administrator can bring one.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || [ "$$(id -u)" != 0 ] \
		|| ! command -v apt-get >/dev/null || { echo "installing Chromium for the tests of the page"; \
		apt-get install --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 \
		|| { apt-get update >/dev/null 2>&1; apt-get install --yes --no-install-recommends \
		chromium fonts-dejavu-core >/dev/null 2>&1; } || echo "it could not be installed"; }

lint: $(STAMP) ## ruff check, ruff format --check, mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

clean: ## remove .venv, caches and build files; never the workspace
	@rm -rf $(VENV) $(VENV).log .venv-lock build dist *.egg-info
	@rm -rf .pytest_cache .mypy_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './workspace/*' -prune -exec rm -rf {} +

lock: ## resolve requirements/requirements.in again, into requirements/lock.txt
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv --clear .venv-lock \
		&& .venv-lock/bin/python -m pip install --quiet --quiet uv; }
	@.venv-lock/bin/python requirements/relock.py $(ARGS)

$(STAMP): requirements/lock.txt requirements/install.py setup.py $(SHIM)
	@test -n "$(PYTHON)" || { echo "make install: no python3 found; set PYTHON"; exit 1; }
	@$(PYTHON) requirements/install.py --way $(WAY) $(VENV)
