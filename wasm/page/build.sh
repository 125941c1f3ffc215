#!/bin/sh
# Builds the page, for make and for the wheel.
#
#   wasm/page/build.sh NODE MESHFEED.wasm STRATEGY.wasm
#
# NODE is a folder with bin/node and bin/npm, which node.sh creates. Writes dist/
# and, if package-lock.json changed, node_modules/.
set -eu

if [ $# -ne 3 ]; then
  echo "usage: wasm/page/build.sh NODE MESHFEED.wasm STRATEGY.wasm" >&2
  exit 2
fi
PATH=$(cd "$1/bin" && pwd):$PATH
wasm=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
strategy=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")

cd "$(dirname "$0")"
if ! cmp -s package-lock.json node_modules/.lock; then
  npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
  cp package-lock.json node_modules/.lock
fi
node build.mjs "$wasm" "$strategy"
