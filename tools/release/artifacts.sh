#!/bin/sh
# Adds to dist/ what a release has beside its wheels, which `make wheels` builds first.
#
#   tools/release/artifacts.sh
#
# For Linux: the library, its headers, a pkg-config file and the command, taken from the wheels.
# For macOS and Windows: the command. An SBOM is beside each of these. Then the layout page, the
# licenses, and SHA256SUMS of all files.
set -eu

cd "$(dirname "$0")/../.."
version=$(cat VERSION)
date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pack() {
  tar --sort=name --mtime="@$date" --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX \
    -C "$work" -cf - "$1" | gzip -n >"dist/$1.tar.gz"
}

linux() {
  name=meshfeed-$version-linux-$2
  to=$work/$name
  python3 -m zipfile -e dist/meshfeed-"$version"-*-manylinux2014_"$1".*.whl "$work/$1"
  from=$work/$1/meshfeed
  mkdir -p "$to/bin" "$to/lib" "$to/share/meshfeed" "$to/share/doc/meshfeed"
  install -m 755 "$from/_bin/meshfeed" "$to/bin"
  install -m 755 "$from/_lib/libmeshfeed.so.1" "$to/lib"
  ln -s libmeshfeed.so.1 "$to/lib/libmeshfeed.so"
  mv "$from/_lib/pkgconfig" "$to/lib"
  mv "$from/include" "$to"
  mv "$from"/*.schema.json "$to/share/meshfeed"
  mv "$work/$1"/*.dist-info/licenses/* "$to/share/doc/meshfeed"
  mv "$work/$1"/*.dist-info/sboms/*.cdx.json "dist/$name.cdx.json"
  pack "$name"
}

command() {
  name=meshfeed-$version-$1-$2
  mkdir "$work/$name"
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 "${GO:-go}" build -trimpath -buildvcs=false -ldflags "-s -w" \
    -tags page -o "$work/$name/" ./cmd/meshfeed
  python3 tools/sbom.py "dist/$name.cdx.json" "$work/$name"/*
  cp LICENSE THIRD_PARTY_LICENSES "$work/$name"
  pack "$name"
}

linux x86_64 amd64
linux aarch64 arm64
command darwin arm64
command darwin amd64
command windows amd64
cp wasm/page/dist/layout.html "dist/meshfeed-$version-layout.html"
cp THIRD_PARTY_LICENSES "dist/meshfeed-$version-THIRD_PARTY_LICENSES"
cd dist
sha256sum meshfeed-"$version"* >SHA256SUMS
