#!/bin/sh
# Builds the site into site/, for make and for the tests. Warnings are errors.
#
#   docs/build.sh PYTHON
#
# Needs the packages of the extra site, the library, the command and the layout page. Guides whose
# programs and library are unchanged do not run again.
set -eu

cd "$(dirname "$0")/.."
mkdir -p .build/site/pages
rm -rf .build/site/html # pages that no longer exist
"$1" -m sphinx -b html -W --keep-going -q -c docs -d .build/site/doctrees .build/site/pages .build/site/html
rm -rf site
mv .build/site/html site
