#!/usr/bin/env bash
# Makes the Python environments of the project below build/:
#
#   tools/setup-python.sh        build/venv     tools and tests         (about 20 seconds)
#   tools/setup-python.sh hf     build/venv-hf  torch and transformers  (a minute or more, about 1 GB)
#
# PYTHON=... chooses the interpreter, python3 by default. Does nothing, and says nothing, when the environment already
# matches its requirements file; a run that was cut short is taken up again.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-dev}" in
  dev) venv=build/venv requirements=tools/requirements.txt ;;
  hf) venv=build/venv-hf requirements=tools/requirements-hf.txt ;;
  *) echo "usage: tools/setup-python.sh [dev|hf]" >&2 && exit 2 ;;
esac
python=${PYTHON:-python3}
stamp=$venv/installed.txt
log=build/log/setup-${venv##*/}.log

fail() {
  echo "tools/setup-python.sh: $*" >&2
  exit 1
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python 3.11 or newer, but $python is $("$python" -V 2>&1 || echo missing)"

# What the environment must have been made from: the interpreter, its place (scripts in it hold absolute paths) and
# the requirements.
wanted=$("$python" -VV && pwd && cat "$requirements")

up_to_date() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null
}

up_to_date && exit 0
mkdir -p build/log

# One installation at a time, also when several builds run in this checkout.
if command -v flock >/dev/null; then
  exec 9>"$venv.lock"
  flock 9
  up_to_date && exit 0
fi

echo "installing $requirements into $venv (log: $log)"
rm -f "$stamp"

install() { "$venv/bin/python" -m pip install --disable-pip-version-check --requirement "$requirements"; }

# A sound environment is only completed; one that is half made, or whose interpreter is gone, is made anew.
{ "$venv/bin/python" -m pip --version && install || { "$python" -m venv --clear "$venv" && install; }; } >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "could not install $requirements into $venv; see $log"
}
printf '%s\n' "$wanted" >"$stamp"
