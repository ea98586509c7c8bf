#!/bin/sh
# Makes the image's root of a minimal Debian system, in place. The Dockerfile runs it, and so does the test of the image.
#
#   build-root.sh FOLDER
#
# FOLDER holds image.txt, the locked packages, and Hummock's wheel. It needs root and package registries. What only the
# build needs is gone afterwards, Debian's package manager too; Debian's list of packages stays, for scanners.
set -eu
from=$(cd "$1" && pwd)
home=/usr/lib/hummock
python=$home/bin/python
export DEBIAN_FRONTEND=noninteractive

# Debian's own, at the versions of the day. `binutils` has strip.
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates python3 python3-venv binutils > /dev/null

# pip stays in an environment of its own, which is thrown away.
build=$(mktemp -d)
python3 -m venv "$build/pip"
python3 -m venv --without-pip $home
pip() {
    "$build/pip/bin/python" -m pip --python $python --no-input --disable-pip-version-check --no-cache-dir install \
        --quiet --no-deps --only-binary :all: "$@"
}
pip --require-hashes --requirement "$from/image.txt"
pip --no-index "$from"/hummock-*-none-any.whl
packages=$(echo $home/lib/python3*/site-packages)

# Kernels are compiled now, and lie where a wheel with kernels has them: a start copies them to a place that it may write.
export NUMBA_CACHE_DIR="$build/cache"
$python -m hummock_kernels
target=$($python -c 'import hummock_kernels._jit, numba; print(f"numba-{numba.__version__}-{numba.config.CPU_NAME}")')
mv "$NUMBA_CACHE_DIR" "$packages/hummock_kernels/compiled"
cd "$packages"/hummock_kernels/compiled/hummock-*
mv -- * "$target"
# A cache is its user's alone.
chmod -R go+rX ..

# The service never imports these: tests, tools that make models, a second copy of the runtime for programs in C, kernels
# for graphics cards, and of RapidFuzz all but edit distances.
cd "$packages"
find . -type d -name tests -prune -exec rm -rf {} +
find . \( -name '*.pyi' -o -name '*.pxd' -o -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -delete
rm -rf numpy/f2py numpy/_core/include onnxruntime/transformers onnxruntime/tools onnxruntime/quantization numba/cuda
rm -f onnxruntime/capi/libonnxruntime.so* numpy/_core/_simd.*.so rapidfuzz/fuzz_cpp*.so
# Lexers of Pygments, which rich imports only to show code.
find pygments/lexers -name '[a-z]*.py*' -delete
# Not those in folders *.libs: patchelf has rewritten them, and stripped they would not load.
find llvmlite tokenizers numba lmdb Stemmer.*.so -name '*.so' -exec strip --strip-unneeded {} +
cd /
rm -rf /usr/lib/python3.*/test /usr/lib/python3.*/pydoc_data /usr/lib/python3.*/turtle.py
rm -f /usr/lib/python3.*/lib-dynload/_test*.so
ln -s $home/bin/hummock /usr/local/bin/hummock

# The user of the service, and the one folder that is his.
groupadd --gid 65532 hummock
useradd --uid 65532 --gid hummock --home-dir /data --shell /usr/sbin/nologin hummock
mkdir -p -m 700 /data
chown hummock:hummock /data

rm -rf "$build"
apt-get purge -y -qq --auto-remove python3-venv binutils python3-pip-whl python3-setuptools-whl > /dev/null
apt-get clean
# What installs packages, makes users, logs them in and mounts, with libraries that nothing else needs: nobody does so in a
# running container.
purge() {
    dpkg --purge --force-depends --force-remove-essential --force-remove-protected "$@" > /dev/null
}
purge apt libapt-pkg7.0 sqv libnettle8t64 libhogweed6t64 libseccomp2 debian-archive-keyring openssl tzdata \
    passwd login login.defs libpam-runtime libpam-modules libpam-modules-bin libpam0g libaudit1 libaudit-common libcap-ng0 \
    libsemanage2 libsemanage-common libsepol2 liblastlog2-2 mount util-linux bsdutils libmount1 libblkid1 libsmartcols1 \
    libsystemd0 libudev1
# Others ask it while they are removed.
purge debconf perl-base
rm -rf /usr/lib/*/gconv /var/lib/apt /var/cache/* /var/log/* /tmp/*
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*

echo "image without models, in MB: all, and the packages of Python that take the most"
du --one-file-system --summarize --block-size=1M /
du --summarize --block-size=1M "$packages"/* | sort --reverse --numeric-sort | head -n 12
