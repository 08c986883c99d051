# The command list, for developers and for CI.
PYTHON ?= python3
BIN := .venv/bin
# A BEIR folder with its graph files, for bench-overhead, bench-parity and bench-servers.
DATA ?= ../shared/data/musique_train100
# BEIR folders with judged queries, for bench-quality.
SETS ?= $(wildcard ../shared/data/*)
# BEIR folders with judged queries, for bench-peers.
PEER_SETS ?= ../shared/data/musique_train100 ../shared/data/cacm
# Where the demo serves.
PORT ?= 8080

# Packages with hashes, for the service with all extras that it needs.
COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
  --no-header --quiet
LOCK = $(COMPILE) pyproject.toml --extra servers --extra rerank --extra tracing --extra mcp --extra documents
# What the package is built with.
BUILD_REQUIREMENTS = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")

# What the tests of the frameworks need.
FRAMEWORK_TESTS = hypothesis langchain-tests psutil pytest pytest-asyncio sybil syrupy

# Duration of soak.
SECONDS ?= 3600

.DEFAULT_GOAL := help
.PHONY: help setup lock sbom docs console-pictures demo test test-all test-servers test-frameworks mutation lint bench bench-quality bench-feedback bench-graph-harm bench-recall bench-load bench-scale bench-fusion bench-orchestration bench-peers bench-overhead bench-parity bench-servers bench-faults bench-overload bench-hostile bench-crash bench-cache bench-cpu bench-telemetry bench-batch bench-folder bench-backfill soak clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

UV_INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python
SOURCES = pyproject.toml requirements.lock hatch_build.py $(wildcard fusion/*.pyx adapters/vector/*.pyx) \
  adapters/encoders/model_build.py

# What the service needs, in the locked releases.
.venv/service: $(SOURCES)
	@echo "installing Trivium into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(UV_INSTALL) --constraint requirements.lock --editable .
	@touch $@

# Everything for development as well.
.venv/installed: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check uv
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes --requirement requirements.lock
	$(BIN)/uv pip install --python $(BIN)/python --editable ".[dev]"
	@touch $@ .venv/service

setup: .venv/installed  ## Create .venv with everything for development and the command .venv/bin/trivium

lock: setup  ## Update the lock files to the newest releases that pyproject.toml allows
	$(LOCK) --extra evaluate --extra learn --upgrade --output-file requirements.lock
	$(LOCK) --constraint requirements.lock --output-file compose/requirements.lock
	$(BIN)/python -c '$(BUILD_REQUIREMENTS)' | \
	  $(COMPILE) - --constraint requirements.lock --output-file compose/build-requirements.lock

sbom: setup  ## Write dist/sbom.json (CycloneDX) and dist/licences.md: the Python packages of the image
	$(PYTHON) -m venv --clear dist/contents
	dist/contents/bin/python -m pip install --disable-pip-version-check --require-hashes --requirement compose/requirements.lock
	dist/contents/bin/python -m pip install --disable-pip-version-check --no-deps .
	dist/contents/bin/python -m pip uninstall --yes --disable-pip-version-check pip setuptools
	$(BIN)/python -m pip install --disable-pip-version-check cyclonedx-bom pip-licenses
	$(BIN)/cyclonedx-py environment --output-reproducible --output-file dist/sbom.json dist/contents/bin/python
	$(BIN)/pip-licenses --python dist/contents/bin/python --from mixed --format markdown --output-file dist/licences.md

docs: setup  ## Build the documentation as a site, dist/site, with no link that leads nowhere
	$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement pyproject.toml --extra docs
	$(BIN)/mkdocs build --strict

console-pictures: setup  ## Take pictures of the console on the demo's documents, dist/console (needs Chromium and npm)
	TRIVIUM_DATA_DIR=$${TRIVIUM_DATA_DIR:-.trivium/demo} $(BIN)/trivium demo --no-serve
	TRIVIUM_DATA_DIR=$${TRIVIUM_DATA_DIR:-.trivium/demo} $(BIN)/python -m docs.console_pictures

demo: .venv/service  ## Index this Python's documentation, run three queries, serve the API on 127.0.0.1:PORT
	@TRIVIUM_DATA_DIR=$${TRIVIUM_DATA_DIR:-.trivium/demo} $(BIN)/trivium demo --port $(PORT)

# Two processes; the tests of a file stay together, and so do all that share the real servers.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadgroup

test: setup  ## Run the tests that need nothing but Python, in some two minutes
	$(PYTEST) -m "not process and not server and not slow"

test-all: setup  ## Run every test; those of a server that cannot be started are skipped, and counted
	$(PYTEST) $(PYTEST_OPTIONS)

test-frameworks: setup  ## Test the retrievers of LangChain, LlamaIndex and Haystack, in an environment of their own
	$(PYTHON) -m venv .venv-frameworks
	$(BIN)/uv pip install --quiet --python .venv-frameworks/bin/python \
	  --editable '.[langchain,llama-index,haystack]' $(FRAMEWORK_TESTS)
	.venv-frameworks/bin/python -m pytest -p no:cacheprovider -W default -o asyncio_mode=auto \
	  -o asyncio_default_fixture_loop_scope=function tests/frameworks

test-servers: setup  ## Run the tests that need a real server; fails if one cannot be started
	TRIVIUM_TEST_SERVERS=required $(BIN)/python -m pytest -m server

mutation: setup  ## Mutate fusion, cache, planning and the assembly, and run their tests against every mutant (2 hours)
	$(BIN)/python -m pip install --disable-pip-version-check mutmut
	TRIVIUM_TEST_SERVERS=required $(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

lint: setup  ## Check style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: bench-quality bench-feedback bench-graph-harm bench-recall bench-load bench-scale bench-fusion bench-orchestration bench-peers bench-overhead bench-parity bench-faults bench-overload bench-hostile bench-crash bench-cache bench-cpu bench-telemetry bench-batch bench-folder bench-backfill bench-servers  ## Run every benchmark

bench-quality: setup  ## Quality of hybrid search on judged data sets, compared with every single source; long and dated documents; names that are words
	$(BIN)/python -m benchmarks.quality $(SETS)
	$(BIN)/python -m benchmarks.long_documents $(SETS)
	$(BIN)/python -m benchmarks.embedding_text $(SETS)
	$(BIN)/python -m benchmarks.dated_documents
	$(BIN)/python -m benchmarks.name_pairs

bench-feedback: setup  ## Settings tuned on a month of simulated clicks, against the default ones
	$(BIN)/python -m benchmarks.feedback $(SETS)

bench-graph-harm: setup  ## Graphs that say nothing must not make hybrid search worse; after bench-quality
	$(BIN)/python -m benchmarks.graph_harm $(SETS)

bench-recall: setup  ## How many of the nearest documents the vector search finds, also in a Qdrant on PATH; after bench-quality
	$(BIN)/python -m benchmarks.recall $(SETS)

bench-load: setup  ## Uncached hybrid search over HTTP, 100,000 passages: rate, latency, time by stage
	$(BIN)/python -m benchmarks.load

bench-overhead: setup  ## Time of the adapters relative to the bare drivers, on real servers
	$(BIN)/python -m benchmarks.overhead $(DATA)

bench-parity: setup  ## How far embedded mode and server mode return the same results
	$(BIN)/python -m benchmarks.parity $(DATA)

bench-servers: setup  ## CPU time per query of the service and of real servers, and the fraction of complete responses
	$(BIN)/python -m benchmarks.server_cost $(DATA)

bench-scale: setup  ## The embedded engine with 10,000, 100,000 and 1,000,000 documents (8 minutes, 4 GB of disk and 10 of memory)
	$(BIN)/python -m benchmarks.scale

bench-fusion: setup  ## Time of fusing three rankings of 100 documents, with boosts and provenance
	$(BIN)/python -m benchmarks.fusion_cost

bench-orchestration: setup  ## CPU per query over three delayed sources, compared with asyncio, haystack, langchain and llama-index
	$(BIN)/python -m benchmarks.orchestration.compare

bench-peers: setup  ## Quality and cost beside other hybrid searches, each in an environment of its own (txtai's has 6 GB)
	$(BIN)/python -m benchmarks.peers.compare $(PEER_SETS)

bench-cache: setup  ## The cache: invalidation, one computation per key, a stopped Redis, cost of a hit, memory
	$(BIN)/python -m benchmarks.cache

bench-cpu: setup  ## CPU time of a hybrid search and of an L1 hit, 100,000 passages, in one process
	$(BIN)/python -m benchmarks.cpu

bench-telemetry: setup  ## CPU time of metrics and traces relative to that of a search
	$(BIN)/python -m benchmarks.telemetry_cost

bench-batch: setup  ## 100,000 queries in a batch: throughput, order, memory, and what other searches notice
	$(BIN)/python -m benchmarks.batch

bench-folder: setup  ## trivium index FOLDER: throughput beside bulk calls, memory for ten times the files
	$(BIN)/python -m benchmarks.folder

bench-backfill: setup  ## Build a generation beside the live one: killed, searched meanwhile, throughput and memory
	$(BIN)/python -m benchmarks.backfill

bench-faults: setup  ## Each backend killed, hung, slow, resetting …, singly and in pairs, under constant load; each restarted
	$(BIN)/python -m benchmarks.faults
	$(BIN)/python -m benchmarks.restarts

bench-overload: setup  ## Twice the capacity of a worker for a minute: what is admitted and rejected, and the recovery
	$(BIN)/python -m benchmarks.overload

bench-hostile: setup  ## Schemathesis with the OpenAPI document, then 100,000 hostile requests
	$(BIN)/python -m benchmarks.hostile

soak: setup  ## Constant load for SECONDS (an hour): memory and file descriptors must not grow
	$(BIN)/python -m benchmarks.soak --seconds $(SECONDS)

bench-crash: setup  ## kill -9 the service and its servers at 30 random moments of a bulk write: documents lost
	$(BIN)/python -m benchmarks.crash

clean:  ## Remove the files of setup, tests, benchmarks and the demo
	rm -rf .venv .trivium benchmarks/.data dist .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache
