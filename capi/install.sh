#!/bin/sh
# Builds and installs the C library, its headers, a pkg-config file, the JSON
# Schemas of documents, the command and the licenses.
#
#   capi/install.sh [flags of go build]
#
# PREFIX is the folder of the installation, /usr/local by default. For packagers, files
# are written below DESTDIR. No installed file contains PREFIX, so the tree can be moved.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
built=$root/.build/install
to=${DESTDIR:-}${PREFIX:-/usr/local}

"$root/capi/build.sh" "$built/libmeshfeed.so" "$@"
cd "$root"
case " $* " in
*xla*) cgo=1 ;;
*) cgo=0 ;;
esac
CGO_ENABLED=$cgo "${GO:-go}" build -trimpath -buildvcs=false -ldflags "-s -w" "$@" -o "$built/meshfeed" ./cmd/meshfeed

mkdir -p "$to/bin" "$to/include" "$to/lib/pkgconfig" "$to/share/meshfeed" "$to/share/doc/meshfeed"
install -m 755 "$built/meshfeed" "$to/bin/meshfeed"
install -m 644 capi/include/*.h capi/include/*.hpp "$to/include"
install -m 755 "$built/libmeshfeed.so.1" "$to/lib"
ln -sf libmeshfeed.so.1 "$to/lib/libmeshfeed.so"
install -m 644 core/*/document/*.schema.json core/plan/*/document/*.schema.json "$to/share/meshfeed"
install -m 644 LICENSE THIRD_PARTY_LICENSES "$to/share/doc/meshfeed"
sed "s/@VERSION@/$(cat VERSION)/" capi/meshfeed.pc.in >"$to/lib/pkgconfig/meshfeed.pc"
