# Development commands of Namehop. `make` alone lists them. Each command installs what it needs on first use.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# rustup installs cargo in this folder, which may not be in the PATH of a new shell.
export PATH := $(HOME)/.cargo/bin:$(PATH)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SOAK_PACKETS ?= 10000000
INSTALLED = $(or $(PROGRAM),target/release/namehop)
# The programs that namehop executes: those in its folder if they exist, otherwise those of target/release.
OTHER_PROGRAMS = namehop-p4 namehop-lab
INSTALLED_OTHERS = $(foreach program,$(OTHER_PROGRAMS),$(or $(wildcard $(dir $(INSTALLED))$(program)),target/release/$(program)))
# The shared object that ports need, beside the programs.
SHIM = libnamehop_dpdk.so
INSTALLED_SHIM = $(firstword $(wildcard $(dir $(INSTALLED))$(SHIM) target/release/$(SHIM)))
# Shell completion files, below PREFIX/share.
COMPLETIONS = bash-completion/completions/namehop zsh/site-functions/_namehop fish/vendor_completions.d/namehop.fish
SHELL_OF_bash-completion/completions/namehop = bash
SHELL_OF_zsh/site-functions/_namehop = zsh
SHELL_OF_fish/vendor_completions.d/namehop.fish = fish
SYSTEM_TEST = NAMEHOP=target/debug/namehop NAMEHOP_WORKERS=$(or $(WORKERS),1) PATH="$(CURDIR)/.venv/bin:$(PATH)" .venv/bin/pytest -q --durations=20 tests/system
# Compiling everything takes longer with the files of incremental compilation, with line tables, and with many codegen units, which share
# less code. A test that fails says its line without line tables.
ONCE = CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_CODEGEN_UNITS=8
# clippy in place of the compiler, for this project's crates: one build of the tests also runs the lints. cargo clippy sets the same
# variables.
LINTED = $(ONCE) RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
PACKET_COST = cargo build --release --locked --package namehop-bench --example naive_cost && \
	cargo run --quiet --release --locked --package namehop-bench --example packet_cost --

.PHONY: help setup setup-test setup-cost setup-nic setup-deb setup-ports nic-test build ports release run try test check style unit-test model-test system-test attack-test link-test joint-test interest-way fuzz ebpf-test path-table openapi settings soak results cost-test
.PHONY: cost-record install uninstall deb deb-test clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test

setup-nic:
	@scripts/setup.sh nic

setup-ports:
	@scripts/setup.sh ports

setup-deb:
	@scripts/setup.sh deb

setup-cost:
	@scripts/setup.sh cost

build: setup ## build the programs namehop, namehop-p4 and namehop-lab in target/release
	cargo build --release --locked --package namehop $(addprefix --package ,$(OTHER_PROGRAMS))

release: setup setup-ports ## build target/guided/release/namehop for packages: profile-guided, takes two builds and a minute of runs
	@scripts/release.sh

ports: setup-ports ## build what ports need besides the programs, with DPDK: libnamehop_dpdk.so in target/debug, target/quick and target/release
	@scripts/ports.sh target/debug target/quick target/release

run: setup ## build target/quick/namehop, in half of the time of 'make build', and start a router in the foreground (ARGS="--config FILE" for options)
	cargo build --profile quick --locked --package namehop
	@exec target/quick/namehop run $(ARGS)

# The manifest identifies the package, because the names of some packages differ from their folders.
TRIED = $(firstword $(wildcard $(CRATE)/Cargo.toml */$(CRATE)/Cargo.toml))

try: setup ## run lints and quick tests of one crate after an edit (CRATE=engine, or CRATE=lab/cli)
	@[ -n "$(TRIED)" ] || { echo "make: there is no crate '$(CRATE)': CRATE=engine names core/engine" >&2; exit 1; }
	cargo clippy --manifest-path $(TRIED) --all-targets --locked -- -D warnings
	cargo test --manifest-path $(TRIED) --locked

test: setup-test style unit-test model-test system-test ## run all checks and tests, as continuous integration does

check: style ## check formatting, lints, and the dependencies of folders, crates and modules; count roundabout words
	cargo clippy --workspace --all-targets --locked -- -D warnings

style: setup
	cargo fmt --all --check
	scripts/house.py
	scripts/words.py

unit-test: setup ports ## run the lints and tests of every crate, including the short deterministic fuzz run
	$(LINTED) scripts/unit-tests.py
	$(LINTED) tests/joints/new_driver.py

model-test: setup ## check all interleavings of small programs on the lock-free tables with a model checker
	$(ONCE) RUSTFLAGS="--cfg loom" cargo test --locked --package namehop-table --lib --target-dir target/loom model_

# The build options are those of the unit tests, so that nothing is compiled twice. Eight test processes run in parallel, because
# most tests wait for timers and sockets. The tests marked `alone` need an otherwise idle host and run last.
system-test: setup-test ports ## test real router processes with NDNts and python-ndn clients (WORKERS=2 for two workers in every router)
	$(LINTED) cargo build --locked --workspace --bins --examples
	$(SYSTEM_TEST) -m "not alone" --numprocesses 8 --dist loadfile --no-loadscope-reorder
	$(SYSTEM_TEST) -m alone

attack-test: setup-test ports ## attack a router and P4Runtime, as root: each attack alone, and all at once (ATTACK=slow-readers for one attack; also proxies, p4runtime)
	$(LINTED) cargo build --locked --package namehop --package namehop-p4
	$(LINTED) cargo build --locked --package namehop-traffic --example attack
	ATTACK="$(or $(ATTACK),every)" NAMEHOP=target/debug/namehop PATH="$(CURDIR)/.venv/bin:$(PATH)" \
		.venv/bin/pytest -q -s tests/system/test_attack.py tests/system/test_attack_proxies.py tests/system/test_attack_p4runtime.py

link-test: setup-test ports ## test link faults over each kind of face, as root; 'make test' omits cases that resemble others
	$(LINTED) cargo build --locked --package namehop
	LINKS=every NAMEHOP=target/debug/namehop NAMEHOP_WORKERS=$(or $(WORKERS),1) PATH="$(CURDIR)/.venv/bin:$(PATH)" \
		.venv/bin/pytest -q tests/system/test_link_faults.py tests/system/test_link_state.py

joint-test: setup-test ports ## add a throw-away policy, setting and port driver in a copy of the tree, and count the files that each touches
	$(LINTED) tests/joints/new_driver.py
	PATH="$(CURDIR)/.venv/bin:$(PATH)" .venv/bin/pytest -q tests/joints

# Built with the line tables that the other builds omit.
interest-way: setup-test setup-cost ports ## find the files on an Interest's way by coverage, as root, with shares of the instructions
	cargo build --locked --package namehop
	NAMEHOP=target/debug/namehop NAMEHOP_WORKERS=1 PATH="$(CURDIR)/.venv/bin:$(PATH)" .venv/bin/pytest -q -s tests/system/measure_way.py

path-table: setup-test ## measure namehop cat over many kinds of paths and print the table of docs/benchmarks.md (RATES="2 5", DELAYS, SEGMENTS, LOSSES, DURATION)
	cargo build --release --locked --package namehop
	NAMEHOP=target/release/namehop NAMEHOP_WORKERS=1 PATH="$(CURDIR)/.venv/bin:$(PATH)" .venv/bin/pytest -q -s tests/system/measure_paths.py

nic-test: setup-nic ports ## test network cards without the kernel, in a virtual machine (needs no root and no card)
	$(LINTED) cargo build --locked --package namehop --package namehop-p4
	$(LINTED) cargo build --locked --package namehop-port --example steering
	NAMEHOP=target/debug/namehop .venv/bin/pytest -q tests/nic

fuzz: setup ## run every fuzz target for FUZZ_SECONDS (60) and add new inputs to fuzz/corpus
	scripts/fuzz.sh $(FUZZ_SECONDS)

openapi: setup ## generate docs/openapi.json, the description of the HTTP API, from the code
	NAMEHOP_WRITE_OPENAPI=1 cargo test --locked --package namehop-manage --lib the_description_is_the_one_in_the_documentation

settings: setup ## write router/config/src/default.toml and docs/settings.md from the declarations of the settings
	NAMEHOP_WRITE_SETTINGS=1 cargo test --locked --package namehop-config --lib the_files_are_those_of_the_declarations

ebpf-test: setup-test ## test loaded strategies with 100,000 random programs and 1,000,000 damaged object files, in every form of execution (SEED=1)
	NAMEHOP_EBPF_SEED=$(or $(SEED),1) NAMEHOP_EBPF_PROGRAMS=100000 cargo test --locked --package namehop-ebpf --lib long_programs_do_the_same
	NAMEHOP_EBPF_SEED=$(or $(SEED),1) NAMEHOP_EBPF_OBJECTS=1000000 cargo test --locked --package namehop-engine --lib damaged_programs_do_the_same

soak: setup ## run SOAK_PACKETS (10 million) packets through the engine with leak checks
	NAMEHOP_SOAK_PACKETS=$(SOAK_PACKETS) cargo test --release --locked --package namehop-engine --test pipelines -- --nocapture soak

results: build ports ## repeat the measurements of docs/results in one or two hours, as root (RUNS=3 runs of each; PIECES=reproduce for one of links, sweeps, reproduce)
	scripts/results.sh $(or $(RUNS),3) $(PIECES)

cost-test: setup-cost ## count instructions and cache misses per packet, which may not grow by more than 5 %
	$(PACKET_COST) test

cost-record: setup-cost ## record the reference of cost-test in lab/bench/packet-costs.toml
	$(PACKET_COST) record

$(addprefix target/release/,$(OTHER_PROGRAMS)):
	cargo build --release --locked --package $(notdir $@)

install: $(if $(PROGRAM),$(INSTALLED_OTHERS),build) ## install the programs (PROGRAM=FILE for a router other than that of 'make build'), what 'make ports' has built, the service, the header for strategies, manual pages and documentation under PREFIX (/usr/local)
	install -D -m 755 $(INSTALLED) $(DESTDIR)$(PREFIX)/bin/namehop
	install -m 755 $(INSTALLED_OTHERS) $(DESTDIR)$(PREFIX)/bin
	$(if $(INSTALLED_SHIM),install -D -m 644 $(INSTALLED_SHIM) $(DESTDIR)$(PREFIX)/lib/namehop/$(SHIM))
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|@PREFIX@|$(PREFIX)|' packaging/namehop.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/namehop.service
	install -D -m 644 router/config/src/default.toml $(DESTDIR)$(PREFIX)/share/doc/namehop/namehop.toml
	install -D -m 644 packaging/namehop-ports.conf $(DESTDIR)$(PREFIX)/share/doc/namehop/namehop-ports.conf
	$(INSTALLED) manual $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,$(dir $(COMPLETIONS)))
	$(foreach file,$(COMPLETIONS),$(INSTALLED) completions $(SHELL_OF_$(file)) > $(DESTDIR)$(PREFIX)/share/$(file) &&) true
	install -D -m 644 sdk/namehop_strategy.h $(DESTDIR)$(PREFIX)/include/namehop_strategy.h
	install -d $(DESTDIR)$(PREFIX)/share/doc/namehop/examples $(DESTDIR)$(PREFIX)/share/doc/namehop/strategies
	install -m 644 sdk/examples/*.c $(DESTDIR)$(PREFIX)/share/doc/namehop/examples
	install -m 644 sdk/strategies/*.c $(DESTDIR)$(PREFIX)/share/doc/namehop/strategies

uninstall: ## remove the installed files
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,namehop $(OTHER_PROGRAMS)) $(DESTDIR)$(PREFIX)/include/namehop_strategy.h $(DESTDIR)$(PREFIX)/lib/systemd/system/namehop.service
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/namehop.1 $(DESTDIR)$(PREFIX)/share/man/man1/namehop-*.1
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/,$(COMPLETIONS))
	rm -rf $(DESTDIR)$(PREFIX)/share/doc/namehop $(DESTDIR)$(PREFIX)/lib/namehop

deb: $(if $(PROGRAM),,build) ports ## build the Debian packages namehop and namehop-ports in target/deb (PROGRAM=FILE as for install)
	@scripts/deb.sh $(INSTALLED)

deb-test: setup-deb deb ## install, start, remove and purge the packages in a minimal Debian container, as root
	NAMEHOP_DEBS=$(CURDIR)/target/deb .venv/bin/pytest -q tests/system/test_deb.py

clean: ## remove all build results
	cargo clean
	rm -rf .venv tests/system/ndnts/node_modules tests/system/ndnjs/node_modules
