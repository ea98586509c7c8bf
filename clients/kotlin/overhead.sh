#!/bin/sh
# What the client adds to a call, as bench/clients.py asks: builds what has changed, then times calls.
#
#   overhead.sh TARGET PROJECT ID CALLS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$here/overhead/target
sh "$here/build.sh"
exec java -cp "$program/classes:$(cat "$program/classpath")" dev.hummock.overhead.MainKt "$@"
