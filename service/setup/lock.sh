#!/bin/sh
# Writes the lock files of service/locks from pyproject.toml: versions and hashes, no download addresses.
# What is locked stays as it is while pyproject.toml allows it; `make lock UPGRADE=1` takes the newest instead.
set -eu
cd "$(dirname "$0")/../.."
command -v uv > /dev/null || { echo "error: uv is not installed; get it with: pip install uv" >&2; exit 1; }

compile() {
    name=$1
    shift
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes ${UPGRADE:+--upgrade} \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header --output-file "service/locks/$name.txt" "$@"
    if grep -n '://' "service/locks/$name.txt"; then
        echo "error: service/locks/$name.txt holds an address" >&2
        exit 1
    fi
}

compile server --extra server --extra code --extra convert --extra http --extra console --extra traces pyproject.toml
# The same versions as the server's, so that one environment can hold all three.
compile build --constraint service/locks/server.txt service/locks/build.in
compile dev --constraint service/locks/server.txt --constraint service/locks/build.txt \
    --extra server --extra code --extra convert --extra http --extra mcp --extra console --extra traces \
    --extra postgresql --extra dev pyproject.toml
# What has no wheels, and is built where a C++ compiler is.
compile graph --constraint service/locks/dev.txt --no-emit-package numpy service/locks/graph.in
# What the image holds: models lie in it, so that nothing is fetched, which is all that tokenizers needs the hub for.
compile image --constraint service/locks/dev.txt \
    --no-emit-package huggingface-hub --no-emit-package hf-xet --no-emit-package fsspec --no-emit-package filelock \
    --no-emit-package tqdm --no-emit-package pyyaml \
    --extra server --extra traces --extra postgresql pyproject.toml
# They need nothing of the others: each has an environment of its own.
compile sbom service/locks/sbom.in
compile docs service/locks/docs.in
compile installers service/locks/installers.in
