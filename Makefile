# Everything from a fresh clone. `make help` lists what there is.
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
LOCKS := $(wildcard service/locks/*.txt)
SETUP := pyproject.toml service/setup/setup.sh service/setup/install.py $(LOCKS)
# The repository that `make demo` indexes.
REPO ?= $(CURDIR)
FUZZ_CASES ?= 100000
FUZZ_EVENTS ?= 100000
FUZZ_CALLS ?= 1000000
FUZZ_SEED ?= 1
CRASHES ?= 1000
CRASH_SEED ?= 1
STOPS ?= 200
# Of all drills; one takes some four minutes.
DRILL_ROUNDS ?= 1
# In which `make test`, `make test-all` and `make test-postgresql` run the tests, each file in one.
TEST_PROCESSES ?= auto
DAMAGE_CASES ?= 2000
# Pairs of runs, one with a faultless network and one with a bad one.
NETWORK_ROUNDS ?= 20
ISOLATION_CALLS ?= 100000
SOAK_MINUTES ?= 30
# Where `make pg` and `make pg-cluster` keep their data.
PG ?= .pg
PG_CLUSTER ?= .pg-cluster

PYTEST = $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
# What a fresh clone needs is made in order, also by `make -j`.
.NOTPARALLEL:
.PHONY: help setup model demo pg pg-cluster test test-all test-postgresql test-cluster test-clients fuzz fuzz-damage crash drills isolation mutants soak pictures docs lint bench bench-full bench-peers frameworks eval proto client release lock clean

help: ## What there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.server ## Install Hummock into .venv, with the locked versions

$(VENV)/.server: $(SETUP)
	@sh service/setup/setup.sh server

$(VENV)/.dev: $(SETUP)
	@sh service/setup/setup.sh dev

model demo pg-cluster pictures: export HUMMOCK_MODELS ?= $(CURDIR)/.demo/models

model: $(VENV)/.server ## Fetch the default model, unless it is there
	@mkdir -p -m 700 .demo # where the demo keeps its memories too, which are nobody else's business
	@$(BIN)/hummock models pull auto || echo "no model could be fetched; what needs one will say so" >&2

demo: model ## Start the service, index REPO, learn a sample, ask three questions (DEMO_EXIT=1: then stop)
	@$(BIN)/hummock demo --data .demo --repo "$(REPO)"

test: $(VENV)/.dev model ## Fetch the default model, unless it is there, and run the tests that take no more than minutes (HUMMOCK_SHARED, HUMMOCK_MODELS, TEST_PROCESSES)
	@$(PYTEST) -m 'not cluster and not long' --hypothesis-profile quick

test-all: $(VENV)/.dev model ## The same, and those that build clients, drive a browser, kill services, or need PostgreSQL
	@$(PYTEST)

test-postgresql: $(VENV)/.dev ## Run the tests of the whole service in which the store has a part over PostgreSQL
	@$(PYTEST) tests/service tests/once --store postgresql

test-clients: $(VENV)/.dev ## Run every client through the same cases: one matrix (REQUIRE=--require: none may be missing)
	@$(BIN)/python -m tests.conformance $(REQUIRE)

test-cluster: $(VENV)/.dev ## Run the tests that kill one of three PostgreSQL (needs etcd-server)
	@REQUIRE_POSTGRESQL=1 $(BIN)/python -m pytest -m cluster tests/postgresql

fuzz: $(VENV)/.dev ## Render hostile memories; kill what learns; send hostile calls (FUZZ_CASES, FUZZ_EVENTS, FUZZ_CALLS, FUZZ_SEED)
	@$(BIN)/python -m tests.render.fuzz --cases $(FUZZ_CASES) --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.learning.fuzz --events $(FUZZ_EVENTS) --seed $(FUZZ_SEED)
	@$(BIN)/python -m tests.rpc.fuzz --calls $(FUZZ_CALLS) --seed $(FUZZ_SEED)

crash: $(VENV)/.dev ## Kill and stop a service that many write to; lose, double and reorder calls (CRASHES, STOPS, NETWORK_ROUNDS, CRASH_SEED)
	@$(BIN)/python -m tests.crash.kills --kills $(CRASHES) --seed $(CRASH_SEED)
	@STOPS=$(STOPS) $(BIN)/python -m pytest -q tests/crash/test_stop.py
	@$(BIN)/python -m tests.once.run --rounds $(NETWORK_ROUNDS) --seed $(CRASH_SEED)

drills: $(VENV)/.dev ## Break three PostgreSQL under two services that many write to (DRILL_ROUNDS; needs etcd-server)
	@GRPC_ENABLE_FORK_SUPPORT=0 $(BIN)/python -m tests.postgresql.drills --rounds $(DRILL_ROUNDS)

isolation: $(VENV)/.dev ## Have 64 projects call everything, and see that none hears of another (ISOLATION_CALLS)
	@$(BIN)/python -m tests.isolation.mixed --calls $(ISOLATION_CALLS)

mutants: $(VENV)/.dev ## Take the project out of keys and caches, in a copy, and see that the tests notice
	@$(BIN)/python -m tests.mutations

soak: $(VENV)/.dev ## Converse for SOAK_MINUTES, with restarts, and see that nothing grows
	@$(BIN)/python -m tests.crash.soak --minutes $(SOAK_MINUTES)

fuzz-damage: $(VENV)/.dev ## Damage copies of a store, open and read each in a process of its own (DAMAGE_CASES, FUZZ_SEED)
	@$(BIN)/python -m tests.store.damage --cases $(DAMAGE_CASES) --seed $(FUZZ_SEED)

pg: $(VENV)/.dev ## Start a PostgreSQL of one's own in PG and say how to serve from it; Ctrl-C stops it
	@$(BIN)/python -m tests.postgresql.node "$(PG)"

pg-cluster: model $(VENV)/.dev ## Start three PostgreSQL under Patroni and two services over them, from port 5441 on, in PG_CLUSTER; Ctrl-C stops all (needs etcd-server)
	@$(BIN)/python -m tests.postgresql.cluster --first-port 5441 "$(PG_CLUSTER)"

pictures: $(VENV)/.dev model ## Take the pictures of docs/console again (needs chromium, chromium-driver and a Chinese font)
	@$(BIN)/python -m tests.console.pictures

lint: $(VENV)/.dev ## Style, types, the direction of imports, the contract and what is generated
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd proto && $(BIN)/buf lint
	cd proto && $(BIN)/buf format -d --exit-code
	cd proto && $(BIN)/buf breaking --against baseline.binpb
	PYTHON=$(BIN)/python sh service/setup/check_stubs.sh
	$(BIN)/python service/setup/check_prose.py
	$(BIN)/python clients/python/generate.py --check
	PYTHON=$(BIN)/python sh clients/go/check.sh

bench: $(VENV)/.dev ## Measure what has a goal, in five minutes: bench/results/latest.md
	@$(BIN)/python -m bench

bench-full: $(VENV)/.dev ## The same, growth to 1,000,000 memories, 10,000 projects and more
	@$(BIN)/python -m bench --full

# An environment of their own: their packages and Hummock's do not agree on versions.
PEERS := .bench/peers

bench-peers: $(VENV)/.dev $(PEERS)/.tried ## The same work by other stores, as far as they can be installed
	@$(BIN)/python -m bench.peers

$(PEERS)/.tried: bench/peers/requirements.txt
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --require-hashes --only-binary :all: --requirement $< || \
		echo "the peers could not be installed; those that are missing will be skipped" >&2
	@touch $@

FRAMEWORKS := .bench/frameworks

frameworks: $(VENV)/.dev $(FRAMEWORKS)/.installed ## Install LangChain, LlamaIndex and OpenAI's agents, which adapters are tested with

$(FRAMEWORKS)/.installed: tests/client/frameworks/requirements.txt
	@$(BIN)/python -m venv $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --require-hashes --only-binary :all: --requirement $<
	@touch $@

DOCS := .toolchain/docs

docs: $(VENV)/.dev $(DOCS)/.installed ## Build the site of the documentation into build/docs/site (SITE_URL)
	@$(BIN)/python -m docs.site build/docs --tool $(DOCS)/bin/zensical

# An environment of its own: the rest of the project needs none of it.
$(DOCS)/.installed: service/locks/docs.txt
	@$(BIN)/python -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --require-hashes --only-binary :all: --requirement $<
	@touch $@

bench bench-full bench-peers eval: export HUMMOCK_MODELS ?= $(CURDIR)/.demo/models

eval: model $(VENV)/.dev ## Measure how good the answers are, for every installed model (HUMMOCK_SHARED, HUMMOCK_MODELS)
	@$(BIN)/python -m bench.eval --models-dir "$(HUMMOCK_MODELS)"

proto: $(VENV)/.dev ## Write the stubs of proto/ again, those for Go and TypeScript where their tools are
	PYTHON=$(BIN)/python sh proto/generate.sh
	@if command -v go > /dev/null; then PYTHON=$(BIN)/python sh clients/go/generate.sh; \
		else echo "clients/go is left as it is: go is missing" >&2; fi
	@if [ -d clients/typescript/node_modules ]; then sh clients/typescript/generate.sh; \
		else echo "clients/typescript is left as it is: npm ci has not been run in it" >&2; fi

release: $(VENV)/.server ## Build packages of the commit into dist/ (PARTS=python,kernels,npm,vscode,maven,go,sbom: those alone)
	@$(BIN)/python service/setup/release.py $(PARTS)

client: $(VENV)/.dev ## Write the blocking client again from the one for asyncio, and the types of `send` from the stubs
	@$(BIN)/python clients/python/generate.py

lock: ## Write the locks again (UPGRADE=1: with the newest versions)
	@sh service/setup/lock.sh
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(if $(UPGRADE),--upgrade) --no-emit-index-url \
		--no-emit-find-links --no-annotate --no-header --output-file bench/peers/requirements.txt bench/peers/requirements.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(if $(UPGRADE),--upgrade) --no-emit-index-url \
		--no-emit-find-links --no-annotate --no-header --output-file tests/client/frameworks/requirements.txt \
		tests/client/frameworks/requirements.in

clean: ## Remove what can be made again; the demo's data and models too
	rm -rf $(VENV) .bench .demo .eval .pg .pg-cluster .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	rm -rf tests/console/chromium/axe/node_modules clients/typescript/node_modules clients/typescript/build clients/typescript/dist
	rm -rf clients/vscode/node_modules clients/vscode/build clients/vscode/dist
	find service kernels clients/python tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
