#!/bin/sh
# Writes the Python stubs of proto/ into service/hummock/v1. Needs the `dev` extra; run by `make proto`.
set -eu
cd "$(dirname "$0")"
python="${PYTHON:-python3}"
target=../service
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
PATH="$(dirname "$(command -v "$python")"):$PATH"
"$python" -m grpc_tools.protoc -I. --python_out="$out" --grpc_python_out="$out" --mypy_out="$out" --mypy_grpc_out="$out" \
    hummock/v1/*.proto
"$python" -m grpc_tools.protoc -I. --python_out="$out" --mypy_out="$out" buf/validate/validate.proto
# The vendored rules live inside our package, so that they never clash with another copy of `buf` in site-packages.
find "$out" -name '*.py' -o -name '*.pyi' | while read -r file; do
    sed -i.bak -e 's/^from buf\.validate import/from hummock.v1.buf.validate import/' \
        -e 's/^import buf\.validate\.validate_pb2/import hummock.v1.buf.validate.validate_pb2/' "$file"
done
find "$out" -name '*.bak' -delete
rm -rf "$target"/hummock/v1
mkdir -p "$target"/hummock/v1/buf/validate
cp "$out"/hummock/v1/*.py "$out"/hummock/v1/*.pyi "$target"/hummock/v1/
cp "$out"/buf/validate/* "$target"/hummock/v1/buf/validate/
for package in hummock/v1 hummock/v1/buf hummock/v1/buf/validate; do : > "$target/$package/__init__.py"; done
