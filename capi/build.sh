#!/bin/sh
# Builds the C library: the one recipe, for make, the wheel and the tests.
#
#   capi/build.sh OUT [further flags of go build]
#
# On Linux OUT, such as build/libmeshfeed.so, is what -lmeshfeed finds: a link to
# OUT.1, the library under the name by which programs load it.
#
# GO names the go command, CC the C compiler. The header that Go generates
# beside OUT is removed: the public ones are in capi/include.
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

# The linker does not run in this folder, so the script's path is absolute. The
# quotes are for go build and for the linker, whose paths may hold spaces.
link="-s -w"
library=$out
if [ "$(uname -s)" = Linux ]; then
  library=$out.1
  link="$link \"-extldflags='-Wl,--version-script=$(pwd)/capi/exports.map,-soname,$(basename "$library")'\""
fi

CGO_ENABLED=1 "${GO:-go}" build -buildmode=c-shared -trimpath -buildvcs=false -ldflags "$link" "$@" -o "$library" ./capi
rm -f "${library%.*}.h"
[ "$library" = "$out" ] || ln -sf "$(basename "$library")" "$out"
