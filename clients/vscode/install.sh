#!/bin/sh
# Installs what package-lock.json says, unless it is there, and what the client is built with.
set -eu
cd "$(dirname "$0")"
sh ../typescript/install.sh
installed=node_modules/.package-lock.json
if [ ! -e $installed ] || [ package-lock.json -nt $installed ]; then
    npm ci --silent --ignore-scripts
    touch $installed
fi
