#!/bin/sh
# Builds the C library, for make, the wheel and the tests.
#
#   capi/build.sh OUT [further flags of go build]
#
# On Linux the library is OUT.1, because programs load it by that name. OUT, such
# as build/libmeshfeed.so, is a link to it, which -lmeshfeed finds.
#
# The library decodes JPEG with libjpeg-turbo if tools/libjpeg.py can build that, else
# with Go's decoder. MESHFEED_JPEG=0 leaves libjpeg-turbo out, with 1 it is required.
#
# GO is the go command, CC the C compiler.
# The header that Go generates beside OUT is removed, because the public headers are in
# capi/include.
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

# The linker runs in another folder, so the path of the version script is absolute.
# Go's build ID would depend on that path, so there is none. go build and the linker
# each remove one level of quotes; paths may contain spaces.
link="-s -w -buildid="
library=$out
if [ "$(uname -s)" = Linux ]; then
  library=$out.1
  link="$link \"-extldflags='-Wl,--version-script=$(pwd)/capi/exports.map,-soname,$(basename "$library")'\""
fi

# Of several -tags, go build takes the last only.
tags=libjpeg
python3 tools/libjpeg.py || case $? in
3 | 127) tags= ;; # the reason is printed
*) exit 1 ;;
esac
count=$#
while [ "$count" -gt 0 ]; do
  case $1 in
  -tags) tags=$tags,$2 && shift && count=$((count - 1)) ;;
  -tags=*) tags=$tags,${1#-tags=} ;;
  *) set -- "$@" "$1" ;;
  esac
  shift
  count=$((count - 1))
done

CGO_ENABLED=1 "${GO:-go}" build -buildmode=c-shared -trimpath -buildvcs=false -ldflags "$link" -tags "$tags" "$@" -o "$library" ./capi
rm -f "${library%.*}.h"
[ "$library" = "$out" ] || ln -sf "$(basename "$library")" "$out"
