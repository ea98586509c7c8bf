#!/bin/sh
# Fails, with the difference, when service/hummock/v1 or clients/proto is not what proto/ generates. PYTHON as for
# proto/generate.sh.
set -eu
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/service" "$fresh/clients"
cp -R proto "$fresh/proto"
sh "$fresh/proto/generate.sh" > "$fresh/log" 2>&1 || {
    cat "$fresh/log" >&2
    exit 1
}
for made in service/hummock/v1 clients/proto; do
    diff -r -u --exclude=__pycache__ "$made" "$fresh/$made" || {
        echo "error: $made differs from proto/; run make proto and commit it" >&2
        exit 1
    }
done
