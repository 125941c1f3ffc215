#!/bin/sh
# Builds the site into site/, for make and for the tests. Warnings are errors.
#
#   docs/build.sh PYTHON
#
# Needs the packages of the extra site, the library, the command and the layout page. Guides do not
# run again if their programs and the library are unchanged.
set -eu

cd "$(dirname "$0")/.."
mkdir -p .build/site/pages
rm -rf .build/site/html # pages that no longer exist

# Guides run for minutes and keep their files in a temporary folder. This folder belongs to one
# build, so no other program cleans it up, and what a guide leaves behind goes with it.
TMPDIR=$(mktemp -d "$PWD/.build/site/tmp.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM

"$1" -m sphinx -b html -W --keep-going -q -c docs -d .build/site/doctrees .build/site/pages .build/site/html
rm -rf site
mv .build/site/html site
