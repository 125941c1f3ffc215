# The commands of contributors. `make help` lists them.
#
# Every target sets up only what it needs. Python packages are in .venv. If a
# target needs an extra of pyproject.toml, it installs the extra there. The file
# .venv/.demo is written after the packages of the extra demo are installed. The
# library and the command need Go and a C compiler. With Python and pip, the library
# has libjpeg-turbo, and with nasm its vector code: see tools/libjpeg.py. Only
# `make install` installs anything outside the checkout.

VENV   := .venv
PYTHON := $(VENV)/bin/python
HOST_PYTHON ?= python3
LIBRARY := python/meshfeed/_lib/libmeshfeed.so
COMMAND := python/meshfeed/_bin/meshfeed

export CGO_ENABLED ?= 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup wasm page page-test licenses FORCE demo demo-lm demo-images demo-go drill pages site test test-deep lint check lib install wheel wheels bench bench-go bench-planner golden fuzz selfcheck gpu-check-go plugin-cpu plugins-absent loaders clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/pyvenv.cfg lib $(VENV)/.test $(VENV)/.lint ## install all Python packages of tests and linters, for work without a network

$(VENV)/pyvenv.cfg:
	@$(HOST_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "meshfeed needs Python 3.11 or later, this is " + sys.version)'
	$(HOST_PYTHON) -m venv $(VENV)

EXTRAS := $(addprefix $(VENV)/., demo test lint bench build release site)

$(EXTRAS): $(VENV)/.%: pyproject.toml VERSION | $(VENV)/pyvenv.cfg lib
	@echo "installing the Python packages for $*: once, a minute or two"
	@MESHFEED_LIBRARY=$(LIBRARY) MESHFEED_COMMAND=$(COMMAND) $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[$*]'
	@touch $@

# Go build tags: xla adds PJRT plugins, page embeds the layout page if it was built.
TAGS = $(if $(XLA),xla)$$(test ! -e wasm/page/dist/layout.html || echo ,page)

# Library and command take the same compiled packages, because both are position-independent. The command of a wheel is static.
lib: ## build the C library and the command into the Python package, with the page after `make page`; XLA=1: both open PJRT plugins
	capi/build.sh $(LIBRARY) -tags "$(TAGS)"
	CGO_ENABLED=$(if $(XLA),1,0) go build -buildmode=pie -trimpath -buildvcs=false -ldflags "-s -w" -o $(COMMAND) -tags "$(TAGS)" ./cmd/meshfeed

install: ## install the C library, its headers, a pkg-config file and the command: make install PREFIX=/usr/local
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" capi/install.sh -tags "$(TAGS)"

wasm: .build/meshfeed.wasm .build/strategy.wasm ## build the layout validator and the strategy planner as WebAssembly modules

.build/meshfeed.wasm: FORCE
	wasm/guest/build.sh layout $@

.build/strategy.wasm: FORCE
	wasm/guest/build.sh strategy $@

# The layout page: TypeScript around the validator. node.sh finds or installs
# Node.js, and build.sh builds only what changed.
NODE := .build/node

$(NODE)/.ready: tools/node.txt wasm/page/node.sh | $(VENV)/pyvenv.cfg
	wasm/page/node.sh $(PYTHON) $(NODE)
	touch $@

page: .build/meshfeed.wasm .build/strategy.wasm $(NODE)/.ready ## build the layout page: wasm/page/dist/layout.html, one file that works offline
	wasm/page/build.sh $(NODE) .build/meshfeed.wasm .build/strategy.wasm

page-test: page ## test the page in Chromium; MESHFEED_STRICT=1: fail if there is no browser
	$(NODE)/bin/node --test-reporter=spec wasm/page/tests/all.mjs wasm/page/tests/*.test.mjs wasm/page/tests/deep/*.test.mjs

pages: lib $(VENV)/.test ## write the pages of docs that follow from the code
	$(PYTHON) docs/pages.py

licenses: page ## write THIRD_PARTY_LICENSES, after a change to go.mod or package-lock.json
	$(HOST_PYTHON) tools/licenses.py

site: page lib $(VENV)/.site ## build the documentation into site/: guides run, and reading it needs no network
	docs/build.sh $(PYTHON)

demo: lib $(VENV)/.demo ## train on real images over eight devices, stop, resume on another mesh (a minute)
	$(PYTHON) docs/demo/digits.py --out demo-out

demo-lm: lib $(VENV)/.demo ## train a language model on packed and mixed text, kill it, resume on another mesh (two minutes)
	$(PYTHON) docs/demo-lm/lm.py --out demo-lm-out

demo-images: lib $(VENV)/.demo ## train on JPEG files in archives, stop, resume on one device and in four processes (a minute)
	$(PYTHON) docs/demo-images/images.py --out demo-images-out

demo-go: lib $(VENV)/.demo ## train with GoMLX on eight virtual devices and on XLA, check that both and JAX get the same batches (half a minute)
	@$(MAKE) --no-print-directory plugin-cpu || echo "XLA's plugin for CPUs could not be fetched"
	$(PYTHON) docs/demo-go/demo.py --out demo-out

drill: lib $(VENV)/.demo ## kill one of four training processes, continue with two, check that no batch is lost (half a minute)
	$(PYTHON) docs/drill/drill.py --out drill-out

test: page lib $(VENV)/.test ## all quick tests, with a table of the time of each stage
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py test

test-deep: page lib $(VENV)/.test $(VENV)/.site $(VENV)/.release ## the slow proofs, beyond make test: sanitizers, -race everywhere, soaks, long random runs
	@$(MAKE) --no-print-directory plugin-cpu || echo "NOT TESTED: XLA on CPUs, because its plugin could not be fetched"
	@$(MAKE) --no-print-directory plugins-absent || echo "NOT TESTED: plugins without their hardware, because they could not be fetched"
	@$(MAKE) --no-print-directory loaders || echo "NOT TESTED: the programs of other loaders, because those could not be fetched"
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py test-deep

lint: lib $(VENV)/.test $(VENV)/.lint ## format, lint, types, and other platforms, without the tests
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py lint

check: page lib $(VENV)/.test $(VENV)/.lint ## format, lint, types, imports, other platforms, and all tests
	@PYTHON=$(PYTHON) $(PYTHON) tests/stages.py check

wheel: $(VENV)/.build ## build the wheel and the sdist into dist/, the page included
	$(PYTHON) -m build --outdir dist

wheels: page $(VENV)/.release ## build the release wheels of Linux on x86-64 and arm64 into dist/, both for glibc from 2.17 on
	PATH="$(CURDIR)/$(NODE)/bin:$$PATH" PYTHON=$(PYTHON) tools/release/wheels.sh dist x86_64 aarch64

bench: lib $(VENV)/.bench ## compare with np.take + device_put and with Grain; writes a section of docs/benchmarks.md
	$(PYTHON) -m tests.bench

bench-go: ## measure placing on GoMLX's devices, on XLA's plugin for CPUs too; writes a section of docs/benchmarks.md
	@$(MAKE) --no-print-directory plugin-cpu
	go build -o .build/placing ./tests/placing
	.build/placing -plugin $(CURDIR)/$(PLUGINS)/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so \
	  -commit $$(git rev-parse --short=12 HEAD) -out .build/placing.md
	$(PYTHON) -m tests.bench.section gomlx .build/placing.md

bench-planner: .build/strategy.wasm $(NODE)/.ready ## measure the strategy planner in Go and in Node.js; writes a section of docs/benchmarks.md
	go build -o .build/planning ./tests/planning
	.build/planning -commit $$(git rev-parse --short=12 HEAD) -out .build/planning.md
	$(PYTHON) -m tests.bench.section planner .build/planning.md

golden: ## rewrite golden texts; read the diff before you commit it
	go test $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | \
	  grep -E ' .*(tests/golden|cockroachdb/datadriven)' | cut -d' ' -f1) -args -rewrite

fuzz: ## run every fuzz target for 30 s each
	@for p in $$(go list ./core/... ./internal/... ./arrowio/...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 20x $$p || exit 1; done; done

selfcheck: lib $(VENV)/.demo ## check and measure meshfeed on the devices that JAX sees (two minutes)
	$(PYTHON) -m meshfeed selfcheck

# PJRT plugins, as wheels of Linux on x86-64. tools/plugins pins their hashes.
PLUGINS := .build/plugins

# A plugin is replaced after the new one is complete, so offline the old one stays.
$(PLUGINS)/%.ready: tools/plugins/%.txt | $(VENV)/pyvenv.cfg
	rm -rf $(PLUGINS)/wheels/$*
	$(PYTHON) -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
	  --require-hashes -r $< -d $(PLUGINS)/wheels/$*
	$(PYTHON) -m zipfile -e $(PLUGINS)/wheels/$*/*.whl $(PLUGINS)/wheels/$*/unpacked
	rm -rf $(PLUGINS)/$*
	mv $(PLUGINS)/wheels/$*/unpacked $(PLUGINS)/$*
	rm -rf $(PLUGINS)/wheels/$*
	touch $@

plugin-cpu: $(PLUGINS)/cpu.ready ## fetch XLA's plugin for CPUs (63 MB), on which deep tests compute

plugins-absent: $(PLUGINS)/cuda12.ready $(PLUGINS)/cuda13.ready $(PLUGINS)/tpu.ready ## fetch the plugins of GPUs and TPUs (532 MB): the deep tests try them without the hardware

gpu-check-go: ## check a PJRT plugin on its hardware: make gpu-check-go MESHFEED_PJRT_PLUGIN=/abs/plugin.so
	@test -n "$(MESHFEED_PJRT_PLUGIN)" || { echo "name the plugin: make gpu-check-go MESHFEED_PJRT_PLUGIN=/abs/plugin.so"; exit 2; }
	MESHFEED_PJRT_PLUGIN="$(MESHFEED_PJRT_PLUGIN)" CGO_ENABLED=1 go test -count=1 -v -timeout 20m -run '^TestReal' ./core/gomlxfeed/xla

# Other loaders, which the deep tests compare with. They are not in .venv, because no other test needs them.
LOADERS := .build/loaders

$(LOADERS)/.ready: tools/loaders.txt | $(VENV)/pyvenv.cfg
	rm -rf $(LOADERS)
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps -r $< --target $(LOADERS)
	rm -rf $(LOADERS)/tensorflow/include # 290 MB of C++ headers
	touch $@

loaders: $(LOADERS)/.ready ## install TensorFlow and Datarax for the guide that compares with them (1.1 GB)

clean: ## remove everything that make built
	rm -rf $(VENV) .build build dist site demo-out demo-lm-out demo-images-out drill-out python/meshfeed/_lib python/meshfeed/_bin wasm/page/dist wasm/page/node_modules
