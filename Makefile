# Two commands do everything on a fresh machine: `make demo` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
LOGS := build/test
RUST := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

.PHONY: demo test lint rust-test python-test fuzz sanitize build packages bench format clean

build: $(VENV)/built

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet "maturin>=1.9,<2"
	$(BIN)/pip install --quiet $$($(BIN)/python tests/requirements.py)
	@touch $@

$(VENV)/built: $(VENV)/installed $(RUST) pyproject.toml
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.90 or newer (https://rustup.rs), then run make again"; exit 2; }
	@echo "building the engine (a minute the first time) ..."
	@VIRTUAL_ENV=$$PWD/$(VENV) $(BIN)/maturin develop --release --quiet >$(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@touch $@

# Debian packages that only the tests and the demo's picture need; without root they are named.
packages:
	@tests/packages

demo: build
	@mkdir -p $(DEMO)
	@bench/demo $(BIN)/leadline $(DEMO)

test: packages build
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory rust-test
	$(MAKE) --no-print-directory python-test
	$(MAKE) --no-print-directory fuzz
	@$(BIN)/python tests/check_counts.py $(LOGS)

lint: build
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check --quiet python tests bench fuzz workloads
	$(BIN)/ruff check --quiet python tests bench fuzz workloads
	$(BIN)/mypy

rust-test:
	@mkdir -p $(LOGS)
	cargo test --workspace --exclude leadline-python --quiet 2>&1 | tee $(LOGS)/rust.log

# One thread, as the command line has it: threads for small matrices take twice the time. A file goes
# to one process whole: what its tests share (surveys of every profile) is then simulated once.
python-test: export OMP_NUM_THREADS := 1
python-test: build
	@mkdir -p $(LOGS)
	$(BIN)/pytest -n 2 --dist loadfile -q -m "not real" 2>&1 | tee $(LOGS)/python.log
# Real I/O runs alone: it measures this machine's disk.
	$(BIN)/pytest -q -m real 2>&1 | tee -a $(LOGS)/python.log

# Seconds each fuzz target runs, all side by side.
FUZZ_SECONDS := 60

fuzz:
	@fuzz/run $(FUZZ_SECONDS)

# Builds the engine three times more, so it is a step of CI and not of make test.
sanitize:
	@tests/sanitize

bench: build
	$(BIN)/python bench/profiles.py
	$(BIN)/python bench/engine.py

format:
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format python tests bench fuzz workloads
	$(BIN)/ruff check --fix python tests bench fuzz workloads

clean:
	rm -rf build target $(VENV)
