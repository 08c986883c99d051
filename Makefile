# The command list, for people and for CI.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench bench-load clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --editable ".[dev]"
	@touch $@

setup: .venv/installed  ## Make .venv with everything for development and the command .venv/bin/trivium

demo: setup  ## Index this Python's documentation, answer three questions, serve the API on 127.0.0.1:8080
	TRIVIUM_DATA_DIR=$${TRIVIUM_DATA_DIR:-.trivium/demo} $(BIN)/trivium demo

test: setup  ## Run every test, with line coverage
	$(BIN)/python -m pytest --cov --cov-report=term

lint: setup  ## Style, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-load  ## Every benchmark

bench-load: setup  ## 100,000 passages, uncached hybrid search over HTTP: rate, latency, time by stage
	$(BIN)/python -m benchmarks.load

clean:  ## Remove what setup, tests and the demo made
	rm -rf .venv .trivium benchmarks/.data dist .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache
