#!/usr/bin/env bash
# Installs package-lock.json into node_modules: the libraries that the package is made with, and what checks it. Says
# nothing when they are there.
#
#   tools/setup-npm.sh
set -euo pipefail
cd "$(dirname "$0")/.."

log=build/log/setup-npm.log
stamp=node_modules/installed.json # a copy of the lock file that was installed

up_to_date() { cmp -s package-lock.json "$stamp"; }

up_to_date && exit 0
tools/setup-browser.sh node # node and npm themselves
mkdir -p build/log

# One installation at a time, also when several builds run in this checkout.
if command -v flock >/dev/null; then
  exec 9>build/npm.lock
  flock 9
  up_to_date && exit 0
fi
echo "installing package-lock.json into node_modules (log: $log)"
npm ci --no-audit --no-fund --ignore-scripts >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "tools/setup-npm.sh: could not install package-lock.json; see $log" >&2
  exit 1
}
cp package-lock.json "$stamp"
