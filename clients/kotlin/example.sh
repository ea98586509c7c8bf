#!/bin/sh
# The example: builds what has changed, then prints a system prompt with what the service at HUMMOCK_TARGET remembers.
# With a name (SnippetsKt, JavaSnippets) it runs that class instead: what the documentation shows.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
built=$here/example/target/classpath
changed() {
    [ ! -f "$built" ] || [ -n "$(find "$here/pom.xml" "$here"/*/pom.xml "$here/client/src/main" "$here/example/src" \
        "$here/../proto" -newer "$built" -type f | head -n 1)" ]
}
if changed; then
    mvn -B -q -f "$here/pom.xml" -pl client,plugin,example -Dmaven.test.skip=true package >&2
    touch "$built"
fi
exec java -cp "$here/example/target/classes:$(cat "$built")" "dev.hummock.example.${1:-MainKt}"
