#!/bin/sh
# Writes hummock/v1 from clients/proto. With --check it changes nothing, and fails with the difference where that is not
# what stands there. PYTHON is one with grpcio-tools, as for proto/generate.sh; Go builds the plugins of tools.mod.
set -eu
cd "$(dirname "$0")"
python="${PYTHON:-python3}"
sh ../protos.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/bin"
go build -modfile=tools.mod -o "$out/bin/" \
    google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
(
    cd ../proto
    "$python" -m grpc_tools.protoc -I. --plugin="$out/bin/protoc-gen-go" --plugin="$out/bin/protoc-gen-go-grpc" \
        --go_out="$out" --go_opt=module=hummock.dev/go --go-grpc_out="$out" --go-grpc_opt=module=hummock.dev/go \
        hummock/v1/*.proto
)
if [ "${1:-}" = --check ]; then
    diff -r -u hummock/v1 "$out/hummock/v1" || {
        echo "error: clients/go/hummock/v1 differs from clients/proto; run clients/go/generate.sh and commit it" >&2
        exit 1
    }
else
    rm -rf hummock/v1
    mkdir -p hummock
    cp -R "$out/hummock/v1" hummock/v1
fi
