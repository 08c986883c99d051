# The command list, for people and for CI.
PYTHON ?= python3
BIN := .venv/bin
# A BEIR folder with its graph files, for the benchmarks that need one.
DATA ?= ../shared/data/musique_train100
# Judged data sets, for the benchmark of quality.
SETS ?= $(wildcard ../shared/data/*)

# Of a soak.
SECONDS ?= 3600

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-servers lint bench bench-quality bench-load bench-overhead bench-parity bench-faults bench-overload bench-hostile bench-crash bench-cache soak clean

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

test-servers: setup  ## Every test that needs a real server; fails where one cannot be had
	TRIVIUM_TEST_SERVERS=required $(BIN)/python -m pytest -m server

lint: setup  ## Style, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-quality bench-load bench-overhead bench-parity bench-faults bench-overload bench-hostile bench-crash bench-cache  ## Every benchmark

bench-quality: setup  ## What hybrid search is worth on judged data sets, against every single source
	$(BIN)/python -m benchmarks.quality $(SETS)

bench-load: setup  ## 100,000 passages, uncached hybrid search over HTTP: rate, latency, time by stage
	$(BIN)/python -m benchmarks.load

bench-overhead: setup  ## What our adapters add to the bare drivers, on real servers, as a ratio
	$(BIN)/python -m benchmarks.overhead $(DATA)

bench-parity: setup  ## The same documents and queries in embedded and in server mode: how far they agree
	$(BIN)/python -m benchmarks.parity $(DATA)

bench-cache: setup  ## What the cache promises: staleness, flights, a stopped Redis, the cost of a hit, its bound
	$(BIN)/python -m benchmarks.cache

bench-faults: setup  ## Each backend killed, hung, slow, resetting …, alone and in pairs, under constant load
	$(BIN)/python -m benchmarks.faults

bench-overload: setup  ## Twice of what a worker can do, for a minute: what is admitted, refused, kept, and after
	$(BIN)/python -m benchmarks.overload

bench-hostile: setup  ## Schemathesis over our OpenAPI document, then 100,000 hostile requests
	$(BIN)/python -m benchmarks.hostile

soak: setup  ## Steady load for SECONDS (an hour): memory and file descriptors must stay flat
	$(BIN)/python -m benchmarks.soak --seconds $(SECONDS)

bench-crash: setup  ## kill -9 the service and its stores at 30 random moments of a bulk write: what was lost
	$(BIN)/python -m benchmarks.crash

clean:  ## Remove what setup, tests and the demo made
	rm -rf .venv .trivium benchmarks/.data dist .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache
