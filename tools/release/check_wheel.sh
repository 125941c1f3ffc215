#!/bin/sh
# Installs a wheel with JAX into a new environment, and runs quick tests of loading there.
#
#   tools/release/check_wheel.sh WHEEL
#
# The tests run in a folder without the sources of the package, so they import the installed one.
# PYTHON is the interpreter. The versions of other packages are the versions in pyproject.toml.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: tools/release/check_wheel.sh WHEEL" >&2
  exit 2
fi
wheel=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH MESHFEED_LIBRARY MESHFEED_DEEP

cp -R tests conftest.py pyproject.toml "$work"
grep -oE '"[A-Za-z_]+==[0-9.]+"' pyproject.toml | tr -d '"' | sort -u >"$work/pins.txt"
"${PYTHON:-python3}" -m venv "$work/venv"
cd "$work"
venv/bin/python -m pip install -q --no-compile --disable-pip-version-check -c pins.txt "$wheel[jax,arrow]" pytest
venv/bin/python -c '
import sys, jax, meshfeed as mf
print(f"testing {mf.get_library()} with JAX {jax.__version__}", flush=True)
sys.exit(not all(path.startswith(sys.prefix) for path in (mf.__file__, mf.get_library())))'
venv/bin/meshfeed --version
cd tests/python
set -- loader/test_loading.py loader/test_loader.py loader/test_loader_layout.py loader/test_loop.py \
  loader/test_conformance.py loader/test_order.py loader/test_state.py loader/test_saving.py \
  loader/test_remesh.py loader/test_certificate.py data/test_composition.py data/test_cache.py \
  data/test_union.py data/test_pad.py
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
