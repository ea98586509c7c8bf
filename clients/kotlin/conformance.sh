#!/bin/sh
# The runner of tests/conformance: builds what has changed, then runs every case.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runner=$here/conformance/target
sh "$here/build.sh"
exec java -cp "$runner/classes:$(cat "$runner/classpath")" dev.hummock.conformance.MainKt
