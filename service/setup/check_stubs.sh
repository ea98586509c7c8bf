#!/bin/sh
# Fails, with the difference, when service/hummock/v1 is not what proto/ generates. PYTHON as for proto/generate.sh.
set -eu
cd "$(dirname "$0")/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/service"
cp -R proto "$fresh/proto"
sh "$fresh/proto/generate.sh" > "$fresh/log" 2>&1 || {
    cat "$fresh/log" >&2
    exit 1
}
diff -r -u --exclude=__pycache__ service/hummock/v1 "$fresh/service/hummock/v1" || {
    echo "error: the stubs differ from proto/; run make proto and commit them" >&2
    exit 1
}
