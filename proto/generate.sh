#!/bin/sh
# Writes what follows from proto/: the protos of clients into clients/proto, the Python stubs into
# clients/python/hummock_client/v1.
# Needs the `dev` extra; run by `make proto`.
set -eu
cd "$(dirname "$0")"
python="${PYTHON:-python3}"
stubs=../clients/python/hummock_client/v1
protos=../clients/proto
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
PATH="$(dirname "$(command -v "$python")"):$PATH"
rm -rf "$protos"
"$python" without_rules.py protos "$protos"
"$python" -m grpc_tools.protoc -I. --include_imports --include_source_info --descriptor_set_out="$out/full.binpb" \
    hummock/v1/*.proto
"$python" without_rules.py descriptors "$out/full.binpb" "$out/bare.binpb"
"$python" -m grpc_tools.protoc --descriptor_set_in="$out/bare.binpb" --python_out="$out" --grpc_python_out="$out" \
    --mypy_out="$out" --mypy_grpc_out="$out" hummock/v1/*.proto
# Their package on the wire is hummock.v1, and the one they are imported from is the client's.
sed -i.bak 's/^from hummock\.v1 import /from hummock_client.v1 import /' "$out"/hummock/v1/*.py "$out"/hummock/v1/*.pyi
rm -rf "$stubs"
mkdir -p "$stubs"
cp "$out"/hummock/v1/*.py "$out"/hummock/v1/*.pyi "$stubs"
: > "$stubs/__init__.py"
