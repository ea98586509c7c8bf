#!/bin/sh
# The example: builds what has changed, then prints a system prompt with what the service at HUMMOCK_TARGET remembers.
# With a name (SnippetsKt, JavaSnippets) it runs that class instead: what the documentation shows.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
example=$here/example/target
sh "$here/build.sh"
exec java -cp "$example/classes:$(cat "$example/classpath")" "dev.hummock.example.${1:-MainKt}"
