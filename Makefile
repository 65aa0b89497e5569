# The one door: `make help` says what is behind it.
#
# Each part keeps its own rules (cargo, kernel/Kbuild, core/Makefile,
# tests/guest/Makefile); here they are only called in order.

# What tests, guests and installers take was built here, wherever cargo is told to build.
export CARGO_TARGET_DIR := $(CURDIR)/target

# Those of make check, and those that only make check-long asks for.
KERNELS ?= $(shell scripts/kernels list)
every_kernel := $(shell scripts/kernels list all)
long_kernels := $(shell scripts/kernels list long)
PREFIX  ?= /usr/local
MINUTES ?= 10
SECONDS ?= 60
# scripts/check has more built at once.
CARGO_BUILD ?= build -q -p soloist -p soloist-lab-cli -p soloist-vm -p soloist-plugin

# Of arm64 are the kernels whose names say so.
of_arm64 := $(filter %-arm64 %-arm64-16k,$(KERNELS))
# Nobody debugs what guests of arm64 run: a third less to do.
arm64_cargo := CARGO_PROFILE_DEV_DEBUG=0 \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	scripts/rust-arm64 cargo build -q --target aarch64-unknown-linux-gnu
# soloist-lab is for tests that no row of tests/kernels asks for there.
arm64_programs ?= soloist

.PHONY: help build check check-long check-debug demo bench bench-load fuzz install \
	uninstall deb dist clean kernels cli modules guest-build arm64 wheel notebooks
.DEFAULT_GOAL := help
# Modules want their kernels, and apt one caller at a time: only modules are built beside others.
ifeq ($(filter module-%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

help:
	@echo "make demo         boot a 4-node machine and see real programs coloured"
	@echo "make build        the command line, and the module for the kernels of make check"
	@echo "make check        every test on a 6.12, most on x86-64 and arm64, some on other kernels"
	@echo "make check-long   every test on $(words $(long_kernels)) kernels, the core set on the others, 100 reloads and"
	@echo "                  stress, MINUTES=$(MINUTES) on each kernel, the module's fuzzer as long on 6.12,"
	@echo "                  6.1-rt and the debug kernel (tests/fuzz/run),"
	@echo "                  core, crates, bounds of real time and detection of maps on new seeds each time,"
	@echo "                  the lab's experiments at small scale beside evidence/verdicts.csv,"
	@echo "                  installs in bare Debian 12 and 13, and a container through a reboot of each"
	@echo "make check-debug  the guest tests on a kernel with KASAN and lockdep; some on kernels of boards"
	@echo "make bench        what colouring and reservations cost, in instructions"
	@echo "make fuzz         the parsers, SECONDS=$(SECONDS) each"
	@echo "make install      soloist, soloist-lab and the module (DKMS) under PREFIX=$(PREFIX)"
	@echo "make uninstall    take that away again"
	@echo "make deb          Debian packages in build/deb; make dist: static binaries (ARCH=arm64: a board's)"
	@echo "make wheel        the Python package (build/wheel); make notebooks: run docs/notebooks"
	@echo "make arm64        what guests of arm64 run (soloist vm run --arch arm64)"
	@echo "make clean        remove build/ (kernels too) and target/"
	@echo
	@echo "While you work: cargo test -p soloist-map; make -C core check;"
	@echo "  tests/guest/run -k 6.12 color/threads (one test, one kernel: a minute);"
	@echo "  scripts/check STEP... (steps of make check)"

build: kernels cli modules

check:
	@scripts/check

check-long:
	@$(MAKE) -s guest-build KERNELS="$(every_kernel)" arm64_programs="soloist soloist-lab"
	@$(MAKE) -s -C core seeds
	@seed=$$(date +%s); echo "PROPTEST_RNG_SEED=$$seed"; \
		PROPTEST_RNG_SEED=$$seed cargo test -q --workspace --no-fail-fast
	@NO_BUILD=1 tests/guest/run --all
	@NO_BUILD=1 tests/guest/run --long $(foreach k,$(long_kernels),-k $(k)) load control
	@tests/stress/run $(MINUTES) $(filter-out %-arm64 %-arm64-16k,$(long_kernels))
	@tests/fuzz/run $(MINUTES) 6.12 6.1-rt debug
	@scripts/qemu
	@NO_BUILD=1 tests/record/run
	@tests/recipes/run
	@for draw in beside alone; do \
		cargo run -q --release -p soloist-rt --example bounds 500 $$draw $$(date +%s) || exit; \
	done
	@mkdir -p build/logs
	@cargo run -q --release -p soloist-lab-cli -- lab run --all --small --seeds 3 \
		--verdicts build/verdicts.csv >build/logs/verdicts
	@diff evidence/verdicts.csv build/verdicts.csv
	@cargo run -q --release -p soloist-detect --example recovery "$$(date +%s | \
		awk '{ print $$1 ".." $$1 + 300 }')" show=wrong
	@tests/install/run
	@tests/install/wheel
	@tests/install/slurm
	@scripts/wheel kills
	@scripts/wheel notebooks
	@tests/install/arm64
	@tests/walk/run

check-debug:
	@tests/debug/run
	@tests/debug/board

demo:
	@scripts/demo

bench: guest-build
	@$(MAKE) -s -C bench
	@bench/run
	@bench/ways-run
	@bench/programs-run
	@bench/guard-run
	@bench/latency-run

bench-load:
	@$(MAKE) -s -C bench

fuzz:
	@scripts/packages tools
	@$(MAKE) -s -C core fuzz SECONDS=$(SECONDS)

kernels:
	@scripts/packages vm module $(if $(of_arm64),module-arm64)
	@scripts/kernels $(KERNELS)

cli:
	@scripts/packages build
	@cargo $(CARGO_BUILD)

# SPARSE=2 has every source checked by sparse as well; APART=1 compiles each by itself,
# in build/apart.
modules:
	@$(MAKE) -s -j$$(nproc) $(KERNELS:%=module-%)

module-%:
	@version=$$(basename "$$(readlink -e build/kernels/$*)"); \
	[ -n "$$version" ] || { \
		echo "no kernel $* here: scripts/kernels $*" >&2; exit 1; }; \
	$(MAKE) -s -C kernel KVER=$$version W=1 C=$(or $(SPARSE),0) \
		$(if $(APART),APART=1 OUT=$(CURDIR)/build/apart/$$version)

guest-build: kernels cli modules $(if $(of_arm64),arm64)
	@$(MAKE) -s -C tests/guest

# What guests of arm64 run: Debian's programs, ours and the tests', on QEMU 10.
arm64:
	@scripts/packages vm-arm64
	@scripts/userland arm64
	@scripts/qemu arm64
	@$(arm64_cargo) $(foreach p,$(arm64_programs),--bin $p)
	@mkdir -p build/arm64/bin build/arm64/tests/bin
	@for program in init record; do \
		aarch64-linux-gnu-gcc -static -s -Os -Wall -Wextra -o build/arm64/$$program \
			crates/soloist-vm/guest/$$program.c || exit; \
	done
	@for program in $(arm64_programs); do \
		aarch64-linux-gnu-strip -o build/arm64/bin/$$program.new \
			target/aarch64-unknown-linux-gnu/debug/$$program && \
		mv build/arm64/bin/$$program.new build/arm64/bin/$$program && \
		ln -f build/arm64/bin/$$program build/arm64/tests/bin/$$program || exit; \
	done
	@$(MAKE) -s -C tests/guest ARCH=arm64

install:
	@scripts/install $(PREFIX)

deb:
	@scripts/deb $(if $(filter command line,$(origin ARCH)),$(ARCH))

dist:
	@scripts/dist $(if $(filter command line,$(origin ARCH)),$(ARCH))

wheel:
	@scripts/packages build
	@scripts/wheel

notebooks:
	@scripts/packages build
	@scripts/wheel notebooks

uninstall:
	@scripts/install --remove $(PREFIX)

# A test that was killed leaves the host's /dev mounted in build/chroot.
clean:
	rm -rf --one-file-system build target
