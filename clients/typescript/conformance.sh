#!/bin/sh
# Runs the cases of tests/conformance; what is missing is installed and built first, quietly.
set -eu
cd "$(dirname "$0")"
sh install.sh >&2
node_modules/.bin/tsc -p tsconfig.json --outDir build/cases >&2
exec node build/cases/conformance/runner.js
