#!/usr/bin/env bash
# Installs from the machine's own apt sources what building and testing need and what is not there yet:
#
#   tools/setup-native.sh build   C compiler, make, Python's venv                   (make demo)
#   tools/setup-native.sh         the same, and for the tests: 32-bit libraries, clang with libFuzzer, clang-format,
#                                 objdump                                           (make check, make test)
#
# Each need is tried, not looked up, so a machine that was set up in another way is left as it is, and a run that has
# nothing to do says nothing. Debian and its relatives; elsewhere it names what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

scope=${1:-test}
case $scope in build | test) ;; *) echo "usage: tools/setup-native.sh [build|test]" >&2 && exit 2 ;; esac

log=build/log/setup-native.log
mkdir -p build/log
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo '#include <errno.h>
int main(void) { return errno; }' >"$scratch/program.c"
echo '#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) { return bytes && size ? 0 : 0; }' >"$scratch/fuzz.c"

have() { command -v "$1" >/dev/null; }
links() { "$@" -o "$scratch/out" 2>/dev/null; }

# The newest clang that the Makefile would take; empty when there is none.
find_clang() { command -v clang-19 || command -v clang || true; }

# The apt packages that are missing, one a line. An argument is the clang to ask for: "-19", or "" for the
# distribution's own.
missing() {
  have cc || echo gcc libc6-dev
  have make || echo make
  python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3 python3-venv
  [ "$scope" = test ] || return 0
  have objdump || echo binutils
  # Not the package gcc-multilib: it cannot be installed beside a cross compiler. All that it adds is a link to the
  # headers that the Makefile finds with the same -idirafter.
  if [ "$(uname -m)" = x86_64 ] && ! links cc -m32 -idirafter "/usr/include/$(cc -dumpmachine 2>/dev/null)" "$scratch/program.c"; then
    echo "gcc-$(compiler_version)-multilib"
  fi
  if [ -z "$(find_clang)" ] || ! links "$(find_clang)" -fsanitize=fuzzer,address,undefined "$scratch/fuzz.c"; then
    echo "clang$1" "libclang-rt$(runtime_version "$1")-dev"
  fi
  have clang-format-19 || have clang-format || echo "clang-format$1"
}

# "12", also while there is no compiler yet.
compiler_version() {
  if have gcc; then gcc -dumpversion | cut -d. -f1; else apt-cache depends gcc | sed -n 's/.*Depends: gcc-\([0-9]*\).*/\1/p' | head -n 1; fi
}

# "-19" is that; for the distribution's own clang its number is read off the package it stands for (clang -> clang-14).
runtime_version() {
  if [ -n "$1" ]; then echo "$1"; else apt-cache depends clang | sed -n 's/.*Depends: clang\(-[0-9]*\)$/\1/p' | head -n 1; fi
}

available() { [ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n 's/.*Candidate: \([0-9].*\)/\1/p')" ]; }

fail() {
  echo "tools/setup-native.sh: $*" >&2
  exit 1
}

[ -n "$(missing -19)" ] || exit 0

have apt-get || fail "missing: $(missing -19 | xargs). Only apt is known here; install their like and run again"
as_root=()
if [ "$(id -u)" != 0 ]; then
  have sudo || fail "missing: $(missing -19 | xargs). Neither root nor sudo here; have them installed and run again"
  as_root=(sudo)
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }

: >"$log"
"${as_root[@]}" dpkg --configure -a >>"$log" 2>&1 || true # an installation that was cut short
apt update || echo "apt-get update failed; going on with the lists of last time" >>"$log"
version=""
available clang-19 && version=-19
read -r -a packages <<<"$(missing "$version" | xargs)"
echo "installing ${packages[*]} (log: $log)"
apt install -y --no-install-recommends "${packages[@]}" || {
  tail -n 20 "$log" >&2
  fail "apt-get could not install ${packages[*]}; see $log"
}
[ -z "$(missing "$version")" ] || fail "still missing after the installation: $(missing "$version" | xargs)"
