#!/bin/sh
# Packs the extension; arguments go to vsce, such as `--out FILE`.
set -eu
cd "$(dirname "$0")"
sh install.sh
sh build.sh
cp ../../LICENSE ../../NOTICE .
# Everything is in the bundle.
exec node_modules/.bin/vsce package --no-dependencies --allow-missing-repository --no-rewrite-relative-links "$@"
