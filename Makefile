# Everything a contributor needs, by name. `make help` lists it.
#
# The environment lives in .venv and is rebuilt when what it is made from
# changes. Nothing is installed outside the checkout.

VENV   := .venv
PYTHON := $(VENV)/bin/python
STAMP  := $(VENV)/.ready
HOST_PYTHON ?= python3

export CGO_ENABLED ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup wasm page page-test FORCE demo demo-go drill docs test test-deep check lib wheel bench bench-go golden fuzz selfcheck gpu-check-go plugin-cpu plugins-absent clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv, build the library and the command, warm the build caches

$(STAMP): pyproject.toml hatch_build.py VERSION go.mod go.sum
	@echo "setting up $(VENV): once, a few minutes"
	@began=$$(date +%s); set -e; \
	$(HOST_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "meshfeed needs Python 3.11 or later, this is " + sys.version)'; \
	$(HOST_PYTHON) -m venv $(VENV); \
	$(PYTHON) -m pip install -q --disable-pip-version-check -U pip; \
	$(PYTHON) -m pip install -q --disable-pip-version-check -e '.[dev]'; \
	go build ./... ; go test -count=1 -run '^$$' ./... >/dev/null; \
	go test -race '-gcflags=github.com/gomlx/compute/...=-d=checkptr=0' -count=1 -run '^$$' \
	  ./core/loader/... ./core/batch/... ./core/gomlxfeed ./core/gomlxfeed/internal/... ./arrowio/... >/dev/null; \
	touch $@; echo "set up in $$(( $$(date +%s) - began )) s"

TAGS = $(if $(XLA),xla)$$(test ! -e wasm/page/dist/layout.html || echo ,page)

lib: $(STAMP) ## build the C library and the command into the Python package, with the page after `make page`; XLA=1: both open PJRT plugins
	capi/build.sh python/meshfeed/_lib/libmeshfeed.so -tags "$(TAGS)"
	CGO_ENABLED=$(if $(XLA),1,0) go build -trimpath -ldflags "-s -w" -o python/meshfeed/_bin/meshfeed -tags "$(TAGS)" ./cmd/meshfeed

wasm: .build/meshfeed.wasm ## build the layout validator as a WebAssembly module

.build/meshfeed.wasm: FORCE
	wasm/guest/build.sh $@

# The layout page: TypeScript round the validator. Its recipe builds only what
# changed.
NODE := .build/node

$(NODE)/.ready: tools/node.txt wasm/page/node.sh $(STAMP)
	wasm/page/node.sh $(PYTHON) $(NODE)
	touch $@

page: .build/meshfeed.wasm $(NODE)/.ready ## build the layout page: wasm/page/dist/layout.html, one file that works offline
	wasm/page/build.sh $(NODE) .build/meshfeed.wasm

page-test: page ## try the page in Chromium; MESHFEED_BROWSER=1: fail where there is none
	$(NODE)/bin/node --test wasm/page/tests/*.test.mjs

demo: lib ## train on real images over eight devices, stop, resume on another mesh (a minute)
	$(PYTHON) docs/demo/digits.py --out demo-out

demo-go: lib ## train with GoMLX on eight virtual devices and on XLA, see that both and JAX get the same batches (half a minute)
	@$(MAKE) --no-print-directory plugin-cpu || echo "XLA's plugin for CPUs could not be fetched"
	$(PYTHON) docs/demo-go/demo.py --out demo-out

drill: lib ## kill one of four training processes, go on with two, see that no batch is lost (half a minute)
	$(PYTHON) docs/drill/drill.py --out drill-out

docs: lib ## run the guides and put what they print into them
	$(PYTHON) docs/render.py docs/guides/distributed.py
	$(PYTHON) docs/refresh.py docs/guides/layouts.md

test: page lib ## all quick tests, with a table of what each stage took
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py test

test-deep: page lib ## the slow proofs: sanitizers, -race everywhere, soaks, long random runs
	@$(MAKE) --no-print-directory plugin-cpu || echo "NOT TESTED: XLA on CPUs, because its plugin could not be fetched"
	@$(MAKE) --no-print-directory plugins-absent || echo "NOT TESTED: plugins without their hardware, because they could not be fetched"
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py test-deep

check: page lib ## format, lint, types, imports, other platforms, and all tests
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py check

wheel: $(STAMP) page ## build the wheel and the sdist into dist/, the page included
	$(PYTHON) -m build --outdir dist

bench: lib ## compare with np.take + device_put and with Grain; writes docs/benchmarks.md
	$(PYTHON) -m pip install -q --disable-pip-version-check -e '.[bench]'
	$(PYTHON) -m tests.bench

bench-go: ## measure placing on GoMLX's devices, on XLA's plugin for CPUs too; writes docs/benchmarks-gomlx.md
	@$(MAKE) --no-print-directory plugin-cpu
	go build -o .build/placing ./tests/placing
	.build/placing -plugin $(CURDIR)/$(PLUGINS)/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so \
	  -commit $$(git rev-parse --short=12 HEAD) -out docs/benchmarks-gomlx.md

golden: ## rewrite golden texts; read the diff before you commit it
	go test ./core/layout ./core/loader ./cmd/meshfeed ./capi ./tests/layouts -args -rewrite

fuzz: ## run every fuzz target for 30 s each
	@for p in $$(go list ./core/... ./arrowio/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 20x $$p || exit 1; done; done

selfcheck: lib ## check and measure meshfeed on the devices that JAX sees (two minutes)
	$(PYTHON) -m meshfeed selfcheck

# PJRT plugins, as wheels of Linux on x86-64 whose hashes tools/plugins knows.
PLUGINS := .build/plugins

# One that is there is replaced when its successor is complete: offline, it stays.
$(PLUGINS)/%.ready: tools/plugins/%.txt | $(STAMP)
	rm -rf $(PLUGINS)/wheels/$*
	$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
	  --require-hashes -r $< -d $(PLUGINS)/wheels/$*
	$(PYTHON) -m zipfile -e $(PLUGINS)/wheels/$*/*.whl $(PLUGINS)/wheels/$*/unpacked
	rm -rf $(PLUGINS)/$*
	mv $(PLUGINS)/wheels/$*/unpacked $(PLUGINS)/$*
	rm -rf $(PLUGINS)/wheels/$*
	touch $@

plugin-cpu: $(PLUGINS)/cpu.ready ## fetch XLA's plugin for CPUs (63 MB), which the deep tests compute with

plugins-absent: $(PLUGINS)/cuda12.ready $(PLUGINS)/cuda13.ready $(PLUGINS)/tpu.ready ## fetch the plugins of GPUs and TPUs (532 MB): the deep tests try them without the hardware

gpu-check-go: ## check a PJRT plugin on its hardware: make gpu-check-go MESHFEED_PJRT_PLUGIN=/abs/plugin.so
	@test -n "$(MESHFEED_PJRT_PLUGIN)" || { echo "say which plugin: make gpu-check-go MESHFEED_PJRT_PLUGIN=/abs/plugin.so"; exit 2; }
	MESHFEED_PJRT_PLUGIN="$(MESHFEED_PJRT_PLUGIN)" CGO_ENABLED=1 go test -count=1 -v -timeout 20m -run '^TestReal' ./core/gomlxfeed/xla

clean: ## remove what make made
	rm -rf $(VENV) .build build dist demo-out drill-out python/meshfeed/_lib python/meshfeed/_bin wasm/page/dist wasm/page/node_modules
