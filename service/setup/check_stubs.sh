#!/bin/sh
# Fails, with the difference, when clients/python/hummock_client/v1 is not what proto/ generates. PYTHON as for
# proto/generate.sh.
set -eu
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/clients/python/hummock_client"
cp -R proto "$fresh/proto"
sh "$fresh/proto/generate.sh" > "$fresh/log" 2>&1 || {
    cat "$fresh/log" >&2
    exit 1
}
made=clients/python/hummock_client/v1
diff -r -u --exclude=__pycache__ "$made" "$fresh/$made" || {
    echo "error: $made differs from proto/; run make proto and commit it" >&2
    exit 1
}
