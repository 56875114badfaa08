#!/usr/bin/env bash
# Installs what the tests in JavaScript need and what is not there yet, and says nothing when nothing is missing:
#
#   tools/setup-browser.sh node   tests/node_modules, from tests/package-lock.json: a Node that has relaxed SIMD, and the
#                                 drivers for browsers (npm comes from apt if there is none)
#   tools/setup-browser.sh        the same, and Chromium and, where apt has them, Firefox ESR and WebKitGTK with its driver
#                                 and the invisible screen that it needs
set -euo pipefail
cd "$(dirname "$0")/.."

scope=${1:-browser}
case $scope in node | browser) ;; *) echo "usage: tools/setup-browser.sh [node|browser]" >&2 && exit 2 ;; esac

log=build/log/setup-browser.log
lock=tests/package-lock.json
stamp=tests/node_modules/installed.json # a copy of the lock file that was installed

have() { command -v "$1" >/dev/null; }
apt_has() { apt-cache show "$1" >/dev/null 2>&1; }

fail() {
  echo "tools/setup-browser.sh: $*" >&2
  exit 1
}

# The apt packages that are missing, one a line.
missing() {
  have node || echo nodejs
  have npm || echo npm
  [ "$scope" = browser ] || return 0
  have chromium || echo chromium
  have firefox-esr || ! apt_has firefox-esr || echo firefox-esr
  if apt_has webkit2gtk-driver && apt_has xvfb; then
    have WebKitWebDriver || echo webkit2gtk-driver
    have Xvfb || echo xvfb
  fi
}

modules_are_there() { cmp -s "$lock" "$stamp"; }

[ -n "$(missing)" ] || ! modules_are_there || exit 0
mkdir -p build/log

# One installation at a time, also when several builds run in this checkout.
if have flock; then
  exec 9>build/browser.lock
  flock 9
fi
: >"$log"

if [ -n "$(missing)" ]; then
  have apt-get || fail "missing: $(missing | xargs). Only apt is known here; install their like and run again"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "missing: $(missing | xargs). Neither root nor sudo here; have them installed and run again"
    as_root=(sudo)
  fi
  apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
  apt update || echo "apt-get update failed; going on with the lists of last time" >>"$log"
  read -r -a packages <<<"$(missing | xargs)"
  echo "installing ${packages[*]} (log: $log)"
  apt install -y --no-install-recommends "${packages[@]}" || {
    tail -n 20 "$log" >&2
    fail "apt-get could not install ${packages[*]}; see $log"
  }
fi

modules_are_there && exit 0
echo "installing $lock into tests/node_modules (log: $log)"
(cd tests && npm ci --no-audit --no-fund --ignore-scripts) >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "could not install $lock; see $log"
}
cp "$lock" "$stamp"
