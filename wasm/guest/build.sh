#!/bin/sh
# Builds a WebAssembly module, for make, the page and the tests. The same sources
# give the same bytes in any folder.
#
#   wasm/guest/build.sh layout OUT.wasm    the layout validator
#   wasm/guest/build.sh strategy OUT.wasm  the strategy planner
#
# GO names the go command. The compiler does not inline functions (-l) of
# packages where that makes the module smaller and the time does not matter.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: wasm/guest/build.sh layout|strategy OUT.wasm" >&2
  exit 2
fi
case $2 in
/*) out=$2 ;;
*) out=$(pwd)/$2 ;;
esac

cd "$(dirname "$0")/../.."
mkdir -p "$(dirname "$out")"

# Another program may read OUT, so the complete module replaces it at once.
new=$out.$$
trap 'rm -f "$new"' EXIT

GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= GOWASM= GOEXPERIMENT= "${GO:-go}" build -buildmode=c-shared \
  -trimpath -buildvcs=false -ldflags '-s -w -buildid=' \
  -gcflags=github.com/meshfeed/meshfeed/...=-l \
  -gcflags=slices=-l -gcflags=fmt=-l -gcflags=reflect=-l -gcflags=strings=-l -gcflags=strconv=-l -gcflags=internal/runtime/atomic=-l \
  -o "$new" "./wasm/guest/$1"
mv "$new" "$out"
