#!/bin/sh
# Writes src/gen from clients/proto. Needs `buf` of the `dev` extra, and `npm ci`; with --check it only compares.
set -eu
cd "$(dirname "$0")"
PATH="$PWD/node_modules/.bin:$PWD/../../.venv/bin:$PATH"
sh ../protos.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
buf generate ../proto --output "$out" --template '{"version": "v2", "plugins": [
    {"local": "protoc-gen-es", "out": "gen", "include_imports": true, "opt": ["target=ts", "import_extension=js"]}]}'
if [ "${1:-}" = --check ]; then
    diff -r "$out/gen" src/gen
else
    rm -rf src/gen
    cp -r "$out/gen" src/gen
fi
