#!/bin/sh
# Builds everything here and runs its tests, unless the sources, and what was made of them, are byte by byte as they were
# when that last went well. What Maven says goes to standard error.
set -eu
cd "$(dirname "$0")"
sh ../protos.sh
built=target/built
# Sums and names: what has changed, what is new and what is gone shows, whatever the time of a file.
sources() {
    find pom.xml ./*/pom.xml ./*/src ../proto -type f -exec cksum {} + | LC_ALL=C sort
}
made() {
    find ./*/target/classes ./*/target/classpath ./*/target/*.jar -type f -exec cksum {} + 2> /dev/null | LC_ALL=C sort
}
before=$(sources)
if [ ! -f "$built" ] || [ "$before
$(made)" != "$(cat "$built")" ]; then
    rm -f "$built"
    mvn -B -q clean package >&2
    mkdir -p target
    printf '%s\n%s\n' "$before" "$(made)" > "$built"
fi
