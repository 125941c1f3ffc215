#!/bin/sh
# Builds the guest: the one recipe, for make, the page and the tests. The same
# sources give the same bytes in any folder.
#
#   wasm/guest/build.sh OUT.wasm
#
# GO names the go command. Functions are not inlined (-l) where that makes the
# module smaller and the time does not matter. What the linker writes at length
# is packed.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: wasm/guest/build.sh OUT.wasm" >&2
  exit 2
fi
case $1 in
/*) out=$1 ;;
*) out=$(pwd)/$1 ;;
esac

cd "$(dirname "$0")/../.."
mkdir -p "$(dirname "$out")"

# OUT is replaced when the new module is complete: another program may read it.
new=$out.$$
trap 'rm -f "$new"' EXIT

GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= GOWASM= GOEXPERIMENT= "${GO:-go}" build -buildmode=c-shared -tags guest \
  -trimpath -buildvcs=false -ldflags '-s -w -buildid=' \
  -gcflags=github.com/meshfeed/meshfeed/...=-l \
  -gcflags=slices=-l -gcflags=fmt=-l -gcflags=reflect=-l -gcflags=strings=-l -gcflags=strconv=-l -gcflags=internal/runtime/atomic=-l \
  -o "$new" ./wasm/guest
GOOS= GOARCH= GOFLAGS= "${GO:-go}" run ./wasm/guest/pack "$new"
mv "$new" "$out"
