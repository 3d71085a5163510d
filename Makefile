# Two commands do everything on a fresh machine: `make demo` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
LOGS := build/test
RUST := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

.PHONY: demo test test-long lint lint-rust lint-python rust-test python-test build-for-tests goldens \
	kept-store fuzz sanitize lock install build packages mutants bench check-machine figures \
	figures-stale measure schemas wheel check-wheel docs docs-lock format clean
# Set in some containers; every one of the commands that tests start would compile itself again.
unexport PYTHONDONTWRITEBYTECODE

build: $(VENV)/built

install: $(VENV)/installed

$(VENV)/installed: requirements-dev.lock
	test -x $(BIN)/python || python3 -m venv $(VENV)
	@sed -nE '/^(maturin|uv)==/,/[^\\]$$/p' requirements-dev.lock >$(VENV)/first.txt
	$(BIN)/pip install --quiet --no-compile --no-deps --require-hashes -r $(VENV)/first.txt
	@# uv takes a fifth of pip's time, but knows no index that only pip was told of.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock || \
	$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements-dev.lock
	@# Benches share the helpers and the known truths of the tests.
	@echo $(CURDIR)/tests >$$($(BIN)/python -c "import site; print(site.getsitepackages()[0])")/tests.pth
	@touch $@

# Every package of development and CI, with its version and its hashes; needs the network.
lock:
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --upgrade --quiet -o requirements-dev.lock

$(VENV)/built: $(VENV)/installed $(RUST) pyproject.toml
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.90 or newer (https://rustup.rs), then run make again"; exit 2; }
	@echo "building the engine (a minute the first time) ..."
	@VIRTUAL_ENV=$$PWD/$(VENV) $(BIN)/maturin develop --release --quiet >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@rm -f $(VENV)/built-for-tests
	@touch $@

# The engine as tests have it, with Clippy's compiler and the flags of lint-rust and rust-test: what
# they share is compiled once. `make build` puts the released engine back.
FOR_TESTS := RUSTC_WORKSPACE_WRAPPER=clippy-driver RUSTFLAGS="-D warnings" CARGO_INCREMENTAL=0

build-for-tests: $(VENV)/built-for-tests

$(VENV)/built-for-tests: $(VENV)/installed $(RUST) pyproject.toml
	@VIRTUAL_ENV=$$PWD/$(VENV) $(FOR_TESTS) $(BIN)/maturin develop --profile checked --quiet >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@$(FOR_TESTS) cargo build --profile checked --quiet --workspace --example memfs
	@rm -f $(VENV)/built
	@touch $@

# Debian packages that only the tests and the demo's picture need; without root they are named.
packages:
	@tests/packages

demo: build
	@mkdir -p $(DEMO)
	@# `man leadline` finds them once $(BIN) is in PATH.
	@$(BIN)/python release/man_pages.py $(VENV)/share/man/man1
	@bench/demo $(BIN)/leadline $(DEMO)

# Every part below, two at a time (tests/run.py says in which order); what it prints last is the
# time of each part, the slowest tests and the counts.
test:
	@python3 tests/run.py $(LOGS)

# Minutes of statistics, an hour of everything: by hand, and by a schedule (CONTRIBUTING.md).
test-long: export OMP_NUM_THREADS := 1
test-long: packages build
	@mkdir -p $(LOGS)
	$(BIN)/pytest $(SPREAD) -n 2 -m long 2>&1 | tee $(LOGS)/long.log
	cargo test --workspace --quiet -- --ignored
	$(MAKE) --no-print-directory fuzz
	$(MAKE) --no-print-directory sanitize
	$(MAKE) --no-print-directory wheel check-wheel
	tests/audit

lint: lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(FOR_TESTS) cargo build --profile checked --workspace --all-targets --quiet

lint-python: install
	$(BIN)/ruff format --check --quiet python tests bench fuzz release workloads
	$(BIN)/ruff check --quiet python tests bench fuzz release workloads
	$(BIN)/codespell *.md docs python crates tests bench release workloads
	$(BIN)/proselint check --config tests/proselint.json *.md docs python/leadline/record/findings.toml
	$(BIN)/mypy

rust-test:
	@mkdir -p $(LOGS)
	$(FOR_TESTS) cargo test --profile checked --workspace --quiet 2>&1 | tee $(LOGS)/rust.log

# tests/conftest.py says what goes to one process, and in which order. A process that dies ends the
# run: with another in its place xdist waited for ever.
SPREAD := -q --dist loadgroup --no-loadscope-reorder --max-worker-restart 0

# One thread, as the command line has it: threads for small matrices take twice the time. Eight
# processes on two processors: those with the real I/O, the servers and the kills mostly wait. Four
# left a fifth of the processors idle, six their last minutes.
python-test: export OMP_NUM_THREADS := 1
python-test: build-for-tests
	@mkdir -p $(LOGS)
	@# Else each of the eight compiles Leadline, and rewrites the asserts of all tests. What cannot be
	@# collected is told by the run itself.
	@$(BIN)/python -m compileall -q python
	@$(BIN)/pytest -q --collect-only -m "not long" >/dev/null || true
	$(BIN)/pytest $(SPREAD) -n 8 -m "not long" --junitxml $(LOGS)/python.xml 2>&1 | tee $(LOGS)/python.log

# Writes what Leadline says of every kind of record anew; read the difference before keeping it.
goldens: export UPDATE_GOLDENS := 1
goldens: build-for-tests
	$(BIN)/pytest tests/golden -q
	git --no-pager diff --stat -- tests/golden/expected

# Adds a store of today's tables and records to those that must stay readable, if they are others
# than in the newest there.
kept-store: build-for-tests
	PYTHONPATH=tests:tests/stores $(BIN)/python tests/stores/keep_store.py

# Writes what the types of the wire say; read the difference before keeping it.
schemas: export UPDATE_SCHEMAS := 1
schemas:
	$(FOR_TESTS) cargo test --profile checked --quiet -p leadline-wire schemas
	git --no-pager diff --stat -- protocol

# Seconds each fuzz target runs, three side by side.
FUZZ_SECONDS := 60

fuzz:
	@fuzz/run $(FUZZ_SECONDS)

# Builds the engine three times more, so it is a step of CI and not of make test.
sanitize:
	@tests/sanitize

# What only a calm machine can say of its speed; a busy one is told so and fails nothing.
check-machine: packages build
	$(BIN)/python bench/check_machine.py

# What is published: a wheel for every Python since 3.11, and an sdist (release/wheel says more).
wheel: build
	release/wheel

# The wheel as a stranger meets it, without Rust; installs from the package index.
check-wheel:
	release/check_wheel
	release/check_sdist

# The documentation as a site with a search of its own, in build/docs/site; its generator comes from
# the package index, into a place of its own.
DOCS := build/docs
docs: build $(DOCS)/installed
	$(BIN)/python release/site/build.py
	NO_MKDOCS_2_WARNING=1 $(DOCS)/venv/bin/mkdocs build --strict --quiet --config-file $(DOCS)/mkdocs.yml
	@echo "open $(DOCS)/site/index.html"

$(DOCS)/installed: release/site/requirements.txt
	@mkdir -p $(DOCS)
	test -x $(DOCS)/venv/bin/python || python3 -m venv $(DOCS)/venv
	$(DOCS)/venv/bin/pip install --quiet --no-compile --require-hashes -r release/site/requirements.txt
	@touch $@

docs-lock:
	$(BIN)/uv pip compile release/site/requirements.in --universal --python-version 3.11 \
		--generate-hashes --no-header --upgrade --quiet -o release/site/requirements.txt

# Small changes of the deciding code that the tests must notice: a sample, the same each time.
mutants: build
	@tests/mutants all

# Puts what benches stored into README and docs/; the second lists what is older than its code.
figures: build
	$(BIN)/python bench/figures

figures-stale: build
	$(BIN)/python bench/figures --stale

# Measures anew what is older than its code, one after the other and alone, the shortest first.
measure: packages build
	$(BIN)/python bench/measure.py

bench: build
	$(BIN)/python bench/profiles.py
	$(BIN)/python bench/engine.py

format:
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format python tests bench fuzz release workloads
	$(BIN)/ruff check --fix python tests bench fuzz release workloads

clean:
	rm -rf build target $(VENV)
