#!/bin/sh
# Bundles the extension and the client for TypeScript into dist/extension.js; with --tests the tests into build/ too.
set -eu
cd "$(dirname "$0")"

bundle() {
    node_modules/.bin/esbuild "$@" --bundle --platform=node --target=node20 --format=cjs --log-level=warning \
        --external:vscode --alias:hummock=../typescript/src/index.ts
}

bundle src/extension.ts --minify --outfile=dist/extension.js
if [ "${1:-}" = --tests ]; then
    rm -rf build
    bundle test/*.test.ts --outdir=build
    # Where Node looks for the module `vscode` on behalf of build/extension.js.
    bundle test/stand_in.ts --outfile=build/node_modules/vscode/index.js
    cp dist/extension.js build/extension.js
fi
