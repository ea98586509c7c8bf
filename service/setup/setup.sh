#!/bin/sh
# Makes .venv ready: checks what a fresh machine may lack, then hands over to install.py.
#
#   setup.sh server|dev
#
# PYTHON names the interpreter to use; otherwise the first of python3, python3.14 … python3.11 that will do.
set -eu
cd "$(dirname "$0")/../.."
extra=${1:?usage: setup.sh server|dev}

apt='sudo apt-get install -y python3-venv'
case "$(uname -s)" in
    Darwin) remedy='Python from python.org or Homebrew' ;;
    *) remedy=$apt ;;
esac

is_new_enough() {
    command -v "$1" > /dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}

# Prints what the interpreter lacks, if anything.
lacks() {
    "$1" -c 'import venv, ensurepip' 2> /dev/null ||
        echo "error: $1 cannot make virtual environments (venv, ensurepip); install them: $remedy"
}

chosen=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    is_new_enough "$candidate" || continue
    chosen=${chosen:-$candidate}
    [ -z "$(lacks "$candidate")" ] || continue
    chosen=$candidate
    break
done

missing=
if [ -z "$chosen" ]; then
    missing="error: Python 3.11 or newer was not found (looked for ${PYTHON:-python3, python3.11 … python3.14}); install it: $remedy, or name one with PYTHON=…"
else
    missing=$(lacks "$chosen")
fi
if [ -n "$missing" ]; then
    printf '%s\n' "$missing" >&2
    exit 1
fi
exec "$chosen" service/setup/install.py "$extra"
