# Development commands. They need Python 3.11 or newer, a Rust toolchain, a C compiler and make;
# everything else is installed into .venv, which `make clean` removes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
export UV_SYSTEM_CERTS ?= true

# The sources of the installed package: after a change, the next command reinstalls it.
SOURCES := pyproject.toml Cargo.toml Cargo.lock constraints.txt \
  $(wildcard crates/*/Cargo.toml) $(shell find crates -name '*.rs')

# Packages with dependencies of their own.
EXAMPLES := examples/quinn examples/rtc examples/str0m
TARGET := $(or $(CARGO_TARGET_DIR),target)
# All of the workspace is selected, here and below: a selection of packages has its own features of dependencies, for
# which everything would be compiled again.
BUILD_BENCH := cargo build --quiet --release --locked --workspace --bin talkspurt-bench
BUILD_SCHEMA := cargo build --quiet --locked --workspace --bin schema

.PHONY: setup tools demo test test-rust test-python test-adding examples lint audit msrv wasm playground format types schema rustdoc pages docs dist bench bench-commands bench-gate bench-peers fuzz pins clean help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

setup: $(VENV)/installed ## set up what runs need into .venv

tools: $(VENV)/tools ## add what tests, checks and documentation need

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@command -v cargo > /dev/null || { echo "A Rust toolchain is needed: cargo was not found."; exit 1; }
	@echo "Making a Python environment in $(VENV)."
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; Debian and Ubuntu keep it in the package python3-venv."; exit 1; }
	@sed -n '/^uv==/,/[^\\]$$/p' constraints.txt > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt

$(VENV)/installed: $(UV) $(SOURCES)
	@echo "Installing Python packages into $(VENV): about 0.6 GB, half a minute for the first time."
	$(UV) pip install --quiet --python $(BIN)/python --compile-bytecode --verify-hashes -c constraints.txt -r pyproject.toml --group build
	@echo "Compiling talkspurt: some minutes for the first time, later only what has changed."
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q python/talkspurt
	@touch $@

$(VENV)/tools: $(VENV)/installed constraints.txt
	@echo "Installing the packages of tests, checks and documentation: about 1 GB."
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r constraints.txt
	@touch $@

demo: setup ## run the first call and say where its report is
	@echo "Simulating five calls of a minute: a few seconds."
	$(BIN)/talkspurt run scenarios/first-call.toml

test: test-rust test-python ## run all tests

test-rust: setup
	cargo test --workspace --locked

# Tests in real time mostly wait: they run beside the others, which leave them the processor.
test-python: tools
	@log=$$(mktemp); $(BIN)/python -m pytest -o cache_dir=.pytest_cache/live -m live -n 4 --dist loadfile > $$log 2>&1 & live=$$!; \
	trap 'kill $$live; wait $$live; rm -f $$log; exit 130' INT TERM; \
	nice -n 10 $(BIN)/python -m pytest -m 'not live' -n auto --dist loadfile --no-loadscope-reorder; \
	others=$$?; wait $$live; live=$$?; cat $$log; rm -f $$log; exit $$((others | live))

test-adding: tools ## follow the page on adding a transport in a copy, and measure over it
	TALKSPURT_ADD_A_TRANSPORT=1 $(BIN)/python -m pytest tests/test_adding_a_transport.py

STR0M := { kind = 'external', stack = 'str0m-
examples: setup ## test the example programs, which have dependencies of their own
	@for own in $(EXAMPLES); do (cd $$own && CARGO_TARGET_DIR=$(abspath $(TARGET)) cargo test --locked) || exit 1; done
	cd examples/str0m && CARGO_TARGET_DIR=$(abspath $(TARGET)) cargo build --quiet --locked
	$(BIN)/talkspurt evaluate rmcat --case 5.1 --seeds 1 --quiet --program $(TARGET)/debug/talkspurt-str0m \
	  --transport "$(STR0M)0.24.1' }" --transport "$(STR0M)0.25.0' }" --baseline str0m-0.24.1

lint: tools ## check format, lints, types and the schema
	cargo fmt --all --check
	@for own in fuzz $(EXAMPLES); do (cd $$own && cargo metadata --locked --format-version 1 > /dev/null) || exit 1; done
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BUILD_SCHEMA)
	$(TARGET)/debug/schema --check

format: tools ## format everything
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The advisory database is a public repository: without a way to it that check is skipped.
audit: tools ## check licences, sources and known vulnerabilities of all crates
	$(BIN)/cargo-deny --locked check bans licenses sources
	@if $(BIN)/cargo-deny fetch db 2> /dev/null; then $(BIN)/cargo-deny --locked --offline check advisories; \
	  else echo "The advisory database cannot be fetched: known vulnerabilities are not checked."; fi

MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv: setup ## check that the oldest supported Rust compiles the workspace
	@if cargo +$(MSRV) --version > /dev/null 2>&1 || rustup toolchain install $(MSRV) --profile minimal > /dev/null 2>&1; then \
	  cargo +$(MSRV) check --quiet --workspace --locked --target-dir $(TARGET)/msrv; \
	else echo "Rust $(MSRV) cannot be installed: the oldest supported version is not checked."; fi

# talkspurt-wasm depends on all crates that need no operating system, but testing. The pinned compiler for C is not part
# of the other commands' packages. crates/wasm/link.sh links the module a second time with libopus and its models, which
# is all that the first command compiles.
WASM := wasm32-unknown-unknown
WEB = $(TARGET)/$(WASM)/web
BUILD_WEB := CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS=-Ctarget-feature=+simd128 \
  CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$(CURDIR)/crates/wasm/link.sh cargo build --quiet --locked --profile web --target $(WASM)
wasm: tools ## build the simulator as a WebAssembly module, and run it under Node
	@if rustup target list --installed 2> /dev/null | grep -qx $(WASM) || rustup target add $(WASM) > /dev/null 2>&1; then \
	  $(UV) pip install --quiet --python $(BIN)/python --require-hashes -r crates/wasm/constraints.txt && \
	  models=$$($(BUILD_WEB) -p talkspurt-opus --message-format=json-render-diagnostics | sed -n 's/.*#opusic-sys@.*"out_dir":"\([^"]*\)".*/\1/p') && \
	  MODELS=$$models/lib $(BUILD_WEB) -p talkspurt-wasm -p talkspurt-testing && \
	  cp $(WEB)/deps/talkspurt_models.wasm $(WEB) && \
	  TALKSPURT_WASM=$(abspath $(WEB))/talkspurt_wasm.wasm $(BIN)/python -m pytest -n 2 --dist loadgroup tests/test_wasm.py tests/test_playground.py; \
	else echo "Rust's target $(WASM) cannot be installed: WebAssembly is not checked."; fi

playground: wasm ## build the page to play on into site/, as a folder and as one file
	$(BIN)/python playground/build.py $(WEB)/talkspurt_wasm.wasm $(WEB)/talkspurt_models.wasm site

rustdoc: setup ## check the documentation of the Rust crates
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked

pages: tools ## write the pages and pictures of docs/ that the program makes
	$(BUILD_SCHEMA)
	$(TARGET)/debug/schema
	$(BIN)/python docs/hooks.py

docs: tools ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: setup ## build the distributed wheel into dist/: one codegen unit, profile-guided
	@test -x "$$(rustc --print sysroot)/lib/rustlib/$$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-profdata" || { echo "Not installed: llvm-tools. Nothing was built. With rustup: rustup component add llvm-tools"; exit 2; }
	$(BIN)/maturin build --profile dist --pgo --locked --interpreter $(BIN)/python --out dist

bench: tools ## measure the engine (packet-hops per CPU-second, instructions per hop), then the commands
	$(BUILD_BENCH)
	@$(PYTHON) -m benches.table "$(TARGET)/release/talkspurt-bench"
	@echo
	@$(BIN)/python -m benches.commands "$(TARGET)/release/talkspurt-bench" $(ARGS)

# ARGS="--only run out", ARGS=--quick, ARGS=--write: a part, and the table of docs/command-cost.md.
bench-commands: tools ## compare the cost of commands with the engine alone; part of bench
	$(BUILD_BENCH)
	@$(BIN)/python -m benches.commands "$(TARGET)/release/talkspurt-bench" $(ARGS)

bench-gate: setup ## fail if a hop costs more instructions than benches/limits.toml permits
	$(BUILD_BENCH)
	@$(PYTHON) -m benches.gate "$(TARGET)/release/talkspurt-bench" $(ARGS)

# ARGS="--only w1 w3 --pairs 1" runs a part and writes no page; see ARGS=--help.
bench-peers: tools ## compare the speed with ns-2 and ns-3; writes docs/performance.md
	$(BUILD_BENCH)
	@$(BIN)/python -m benches.peers $(ARGS)

# New inputs are stored in fuzz/corpus, failures in fuzz/artifacts.
TIME ?= 60
TARGETS ?= wire media dccp tcp sctp measure direct talk emulate capture
fuzz: ## fuzz parsers, endpoints, measurements, emulations and captures, TIME seconds for each of TARGETS
	@cargo +nightly --version > /dev/null 2>&1 || { echo "A nightly Rust toolchain is needed: rustup toolchain install nightly"; exit 1; }
	@cargo fuzz --version > /dev/null 2>&1 || { echo "cargo-fuzz is needed: cargo install cargo-fuzz --locked"; exit 1; }
	@for target in $(TARGETS); do python3 fuzz/seeds.py unpack $$target fuzz/corpus/$$target && \
	  cargo +nightly fuzz run -s none $$target fuzz/corpus/$$target -- -max_len=3000 -rss_limit_mb=1024 -max_total_time=$(TIME) || exit 1; done

pins: $(UV) ## update the Python dependencies and their hashes
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
	  --generate-hashes --extra scores --group dev pyproject.toml -o constraints.txt
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
	  --generate-hashes --group wasm -o crates/wasm/constraints.txt

clean: ## remove everything that make created
	rm -rf $(VENV) target dist site runs
