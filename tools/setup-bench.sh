#!/usr/bin/env bash
# Installs what `make bench` needs beyond tools/setup-browser.sh and what is not there yet: tools/bench/node_modules (wllama,
# llama.cpp for Node, a driver for both browsers) from tools/bench/package-lock.json, and Firefox from apt where that has
# it. Says nothing when nothing is missing. Without Firefox its rows say so.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup-browser.sh

log=build/log/setup-bench.log
lock=tools/bench/package-lock.json
stamp=tools/bench/node_modules/installed.json # a copy of the lock file that was installed
mkdir -p build/log

have() { command -v "$1" >/dev/null; }

if ! have firefox-esr && ! have firefox && have apt-get && [ ! -e build/log/no-firefox ]; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "installing firefox-esr (log: $log)"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
    --no-install-recommends firefox-esr >>"$log" 2>&1 || touch build/log/no-firefox
fi

cmp -s "$lock" "$stamp" && exit 0
echo "installing $lock into tools/bench/node_modules (log: $log)"
# Not `npm ci`: it insists on optional packages of other machines, which the lock names without a version. --force: so does
# llama.cpp's build for x86-64 Linux elsewhere, where its rows then say that it is missing.
(cd tools/bench && npm install --no-save --no-audit --no-fund --ignore-scripts --omit=optional --force) >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "tools/setup-bench.sh: could not install $lock; see $log" >&2
  exit 1
}
cp "$lock" "$stamp"
