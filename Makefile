# The one door: `make help` says what is behind it.
#
# Each part keeps its own rules (cargo, kernel/Kbuild, core/Makefile,
# tests/guest/Makefile); here they are only called in order.

KERNELS ?= 6.12 6.12-rt 6.12-cloud 6.1 6.1-rt 6.1-cloud
PREFIX  ?= /usr/local
MINUTES ?= 10
SECONDS ?= 60

.PHONY: help build check check-long check-debug demo bench fuzz install \
	uninstall clean kernels cli modules guest-build
.DEFAULT_GOAL := help

help:
	@echo "make demo         boot a 4-node machine and see real programs coloured"
	@echo "make build        the command line and the module for six stock kernels"
	@echo "make check        every test, on every kernel (as CI does)"
	@echo "make check-long   stress on every kernel, MINUTES=$(MINUTES) each, 100 reloads"
	@echo "make check-debug  the guest tests on a kernel with KASAN and lockdep"
	@echo "make bench        what colouring and reservations cost, in instructions"
	@echo "make fuzz         the parsers, SECONDS=$(SECONDS) each"
	@echo "make install      soloist and its module (DKMS) under PREFIX=$(PREFIX)"
	@echo "make uninstall    take that away again"
	@echo "make clean        remove build/ (kernels too) and target/"
	@echo
	@echo "Parts of make check: scripts/check STEP..., tests/guest/run --help"

build: kernels cli modules

check:
	@scripts/check

check-long: guest-build
	@NO_BUILD=1 tests/guest/run --long $(foreach k,$(KERNELS),-k $(k)) load control
	@tests/stress/run $(MINUTES) $(KERNELS)

check-debug:
	@tests/debug/run

demo:
	@scripts/demo

bench: guest-build
	@$(MAKE) -s -C bench
	@bench/run
	@bench/guard-run
	@bench/latency-run

fuzz:
	@scripts/packages tools
	@$(MAKE) -s -C core fuzz SECONDS=$(SECONDS)

kernels:
	@scripts/packages vm headers
	@scripts/kernels

cli:
	@cargo build -q -p soloist -p soloist-vm

# SPARSE=2 has every source checked by sparse as well.
modules:
	@for name in $(KERNELS); do \
		version=$$(readlink build/kernels/$$name) || { \
			echo "no kernel $$name here: make kernels" >&2; exit 1; }; \
		$(MAKE) -s -j$$(nproc) -C kernel KVER=$$version W=1 C=$(or $(SPARSE),0) || exit 1; \
	done

guest-build: kernels cli modules
	@$(MAKE) -s -C tests/guest

install:
	@scripts/install $(PREFIX)

uninstall:
	@scripts/install --remove $(PREFIX)

clean:
	rm -rf build target
