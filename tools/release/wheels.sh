#!/bin/sh
# Builds release wheels for Linux, and checks that each runs from glibc 2.17 on.
#
#   tools/release/wheels.sh OUT MACHINE...
#
# A machine is x86_64 or aarch64, whatever this machine is. PYTHON has the extra "release".
set -eu

if [ $# -lt 2 ]; then
  echo "usage: tools/release/wheels.sh OUT MACHINE..." >&2
  exit 2
fi
python=${PYTHON:-.venv/bin/python}
out=$1
shift
cd "$(dirname "$0")/../.."
for machine; do
  MESHFEED_TARGET=$machine "$python" -m build --wheel --no-isolation --skip-dependency-check --outdir "$out"
  wheel=$(ls "$out/meshfeed-$(cat VERSION)"-*-manylinux2014_"$machine".*.whl)
  "$python" -m auditwheel show "$wheel" | grep "^\"manylinux_2_17_$machine\"" ||
    { echo "$wheel does not run from glibc 2.17 on; see: auditwheel show" >&2; exit 1; }
done
