#!/bin/sh
# The runner of tests/conformance: builds what has changed, then runs every case. What Maven says goes to standard error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runner=$here/conformance/target
built=$runner/classpath
changed() {
    [ ! -f "$built" ] || [ -n "$(find "$here/pom.xml" "$here/client/pom.xml" "$here/client/src/main" \
        "$here/conformance/pom.xml" "$here/conformance/src" "$here/../proto" -newer "$built" -type f | head -n 1)" ]
}
if changed; then
    mvn -B -q -f "$here/pom.xml" -pl client,conformance -Dmaven.test.skip=true package >&2
    touch "$built"
fi
exec java -cp "$runner/classes:$(cat "$built")" dev.hummock.conformance.MainKt
