#!/bin/sh
# Builds the package into dist/, once as ES modules and once as CommonJS.
set -eu
cd "$(dirname "$0")"
rm -rf dist
node_modules/.bin/tsc -p tsconfig.esm.json
node_modules/.bin/tsc -p tsconfig.cjs.json
# The package is of ES modules; these files are not.
echo '{ "type": "commonjs" }' > dist/cjs/package.json
