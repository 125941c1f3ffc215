#!/bin/sh
# Builds the C library: the one recipe, for make, the wheel and the tests.
#
#   capi/build.sh OUT [further flags of go build]
#
# GO names the go command, CC the C compiler. The header that Go generates
# beside OUT is removed: the public one is capi/include/meshfeed.h.
set -eu

if [ $# -lt 1 ]; then
  echo "usage: capi/build.sh OUT [go build flags]" >&2
  exit 2
fi
case $1 in
/*) out=$1 ;;
*) out=$(pwd)/$1 ;;
esac
shift

cd "$(dirname "$0")/.."
mkdir -p "$(dirname "$out")"

link="-s -w"
case $(uname -s) in
Linux) link="$link -extldflags=-Wl,--version-script=capi/exports.map,-soname,libmeshfeed.so.1" ;;
esac

CGO_ENABLED=1 "${GO:-go}" build -buildmode=c-shared -trimpath -buildvcs=false -ldflags "$link" "$@" -o "$out" ./capi
rm -f "${out%.*}.h"
