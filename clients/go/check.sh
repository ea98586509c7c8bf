#!/bin/sh
# Fails where the client for Go is not formatted, `go vet` finds something, or hummock/v1 is not what clients/proto
# generates. Without Go it says so, and passes unless REQUIRE_CLIENTS is set. PYTHON as for generate.sh.
set -eu
cd "$(dirname "$0")"
if ! command -v go > /dev/null; then
    echo "clients/go is left out: go is missing" >&2
    [ -z "${REQUIRE_CLIENTS:-}" ]
    exit
fi
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
    echo "error: gofmt would change: $unformatted" >&2
    exit 1
fi
go vet ./...
sh generate.sh --check
