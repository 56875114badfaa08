#!/usr/bin/env bash
# Installs from the machine's own apt sources what builds and runs AArch64 programs elsewhere: a cross compiler and
# qemu's user-mode emulator. Silent when there is nothing to do. Where it cannot be had, the suites of the arm64 build
# are skipped, so that is a notice and no failure.
set -euo pipefail
cd "$(dirname "$0")/.."

log=build/log/setup-arm64.log
mkdir -p build/log
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int main(void) { return 0; }' >"$scratch/program.c"

have() { command -v "$1" >/dev/null; }

# The apt packages that are missing, one a line.
missing() {
  if ! aarch64-linux-gnu-gcc -static -pthread -o "$scratch/out" "$scratch/program.c" -lm 2>/dev/null; then
    echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  fi
  have qemu-aarch64 || echo qemu-user
}

skip() {
  echo "tools/setup-arm64.sh: $*: tests of the arm64 build will be skipped"
  exit 0
}

[ "$(uname -m)" != aarch64 ] || exit 0 # the native build is the ARM one
[ -n "$(missing)" ] || exit 0

have apt-get || skip "$(missing | xargs) missing, and only apt is known here"
as_root=()
if [ "$(id -u)" != 0 ]; then
  have sudo || skip "$(missing | xargs) missing, and neither root nor sudo here"
  as_root=(sudo)
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }

: >"$log"
apt update || echo "apt-get update failed; going on with the lists of last time" >>"$log"
read -r -a packages <<<"$(missing | xargs)"
echo "installing ${packages[*]} (log: $log)"
apt install -y --no-install-recommends "${packages[@]}" || skip "apt-get could not install ${packages[*]}, see $log"
[ -z "$(missing)" ] || skip "still missing after the installation: $(missing | xargs)"
