#!/bin/sh
# Runs the parts of an arm64 wheel under QEMU: the command, C programs, and loading from Python.
#
#   tools/release/check_arm64.sh WHEEL
#
# Needs qemu-user and mmdebstrap of Debian, and the package ziglang for PYTHON. Downloads Debian 12,
# which has Python 3.11, for arm64, without running its programs.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: tools/release/check_arm64.sh WHEEL" >&2
  exit 2
fi
wheel=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
site=$work/site
root=$work/root
arm="qemu-aarch64 -L $root"
python=${PYTHON:-.venv/bin/python}

mmdebstrap --quiet --variant=extract --architectures=arm64 --include=python3,libstdc++6 bookworm "$root"
grep -oE '"[A-Za-z_]+==[0-9.]+"' pyproject.toml | tr -d '"' | sort -u >"$work/pins.txt"
"$python" -m pip install -q --disable-pip-version-check --target "$site" -c "$work/pins.txt" \
  --only-binary=:all: --implementation cp --python-version 3.11 --platform manylinux2014_aarch64 \
  --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 "$wheel[jax]"

echo "== the command"
$arm "$site/meshfeed/_bin/meshfeed" --version
$arm "$site/meshfeed/_bin/meshfeed" plan --axes data=4 --batch 64 --array x=B,128:float32
$arm "$site/meshfeed/_bin/meshfeed" advise llama3-8b --devices 8 --device h100-80 >/dev/null

echo "== C programs"
library=$site/meshfeed/_lib/libmeshfeed.so.1
export FILE="$PWD/internal/arrowmeta/testdata/fixed.arrow"
# devices.c executes itself, and fork.c makes a call that only x86-64 has.
for program in certificate life digest errors every export memory models planner remesh \
  rows silence split stream threads views; do
  "$python" -m ziglang cc -target aarch64-linux-gnu.2.17 -std=c99 -pthread -Icapi/include \
    "capi/ctest/$program.c" "$library" "-Wl,-rpath,${library%/*}" -o "$work/$program"
  printed=$(timeout 600 $arm "$work/$program")
  echo "$program: $printed"
  test "$printed" = ok
done

echo "== Python"
export PYTHONPATH="$site" JAX_PLATFORMS=cpu
awk '/^```python/ { f = 1; next } /^```/ { if (f) exit } f' README.md >"$work/quickstart.py"
$arm "$root/usr/bin/python3.11" - <<'EOF'
import numpy as np, meshfeed as mf
loader = mf.Loader(mf.from_arrays({"x": np.arange(1000)}), batch_size=100, shuffle=True, epochs=1)
rows = sorted(int(x) for batch in loader for x in batch["x"])
print("one epoch with NumPy arrays:", len(rows), "rows")
assert rows == list(range(1000))
EOF
JAX_NUM_CPU_DEVICES=8 $arm "$root/usr/bin/python3.11" "$work/quickstart.py"
