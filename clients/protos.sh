#!/bin/sh
# Writes clients/proto, of which the stubs of Go, Kotlin and TypeScript are made: proto/ without its rules. Needs Python.
set -eu
cd "$(dirname "$0")/../proto"
"${PYTHON:-python3}" without_rules.py protos ../clients/proto
