#!/usr/bin/env bash
# Makes build/emscripten/emcc and build/emscripten/wasm-opt, of an Emscripten that knows relaxed SIMD (3.1.60 or newer),
# and says nothing when they are there:
#
#   tools/setup-wasm.sh
#
# Takes the first of these that the machine has or can have:
#   1. an emcc on PATH that is new enough
#   2. apt's own emscripten package, where that is new enough (Debian 13 and later)
#   3. on an older Debian: clang, lld and llvm 19 of the machine's own suite, and Emscripten and Binaryen of the suite
#      `trixie`, taken from the mirror that the machine uses already. Those two are unpacked below build/emscripten and
#      not installed; Binaryen's programs run with the C library that they were linked to, unpacked beside them.
# Node comes from apt if there is none: Emscripten needs it, and so do the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest=3.1.60
suite=trixie
room=$PWD/build/emscripten
emcc=$room/emcc
stamp=$room/installed.txt
log=build/log/setup-wasm.log

have() { command -v "$1" >/dev/null; }

fail() {
  echo "tools/setup-wasm.sh: $*" >&2
  exit 1
}

# "3.1.69" from the first line of `emcc --version`, or nothing.
version_of() { "$1" --version 2>/dev/null | sed -n '1s/.* \([0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*\).*/\1/p'; }

new_enough() { [ -n "$1" ] && [ "$(printf '%s\n' "$oldest" "$1" | sort -V | head -n 1)" = "$oldest" ]; }

# What was made holds absolute paths, so another place of the checkout, or another script, is a reason to make it anew.
wanted="$PWD $(cksum <tools/setup-wasm.sh)"

up_to_date() { [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && have node && "$room/wasm-opt" --version >/dev/null 2>&1; }

up_to_date && exit 0
mkdir -p build/log build/emscripten

# One installation at a time, also when several builds run in this checkout.
if have flock; then
  exec 9>build/emscripten.lock
  flock 9
  up_to_date && exit 0
fi

: >"$log"
rm -f "$stamp"

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }

# Of the packages given, those that are not installed.
lists_are_fresh=
install() {
  local package missing=()
  for package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  set -- "${missing[@]}"
  have apt-get || fail "missing: $*. Only apt is known here; install their like and run again"
  [ "$(id -u)" = 0 ] || have sudo || fail "missing: $*. Neither root nor sudo here; have them installed and run again"
  [ -n "$lists_are_fresh" ] || apt update || echo "apt-get update failed; going on with the lists of last time" >>"$log"
  lists_are_fresh=yes
  echo "installing $* (log: $log)"
  apt install -y --no-install-recommends "$@" || {
    tail -n 20 "$log" >&2
    fail "apt-get could not install $*; see $log"
  }
}

candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/.*Candidate: \([0-9].*\)/\1/p'; }

# $emcc becomes a program that runs the rest of the line.
write_program() {
  local program=$1
  shift
  printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$program"
  chmod +x "$program"
}

# ---------------------------------------------------------------- the third way

# The mirrors that apt reads the machine's own suite from, one a line.
mirrors() { apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sed -n 's/ [a-z]* main$//p' | sort -u; }

# An apt of our own: its suite, lists and archives have nothing to do with the machine's.
download_from_suite() {
  local apt_room=$room/apt
  rm -rf "$apt_room"
  mkdir -p "$apt_room"/{lists,archives}/partial "$apt_room/etc"
  mirrors | while read -r mirror; do echo "deb $mirror $suite main"; done >"$apt_room/sources.list"
  [ -s "$apt_room/sources.list" ] || fail "apt names no mirror to take $suite from"
  : >"$apt_room/status"
  cat >"$apt_room/apt.conf" <<CONFIG
Dir::Etc::SourceList "$apt_room/sources.list";
Dir::Etc::SourceParts "$apt_room/etc";
Dir::State::Lists "$apt_room/lists";
Dir::State::status "$apt_room/status";
Dir::Cache "$apt_room";
APT::Sandbox::User "root";
CONFIG
  export APT_CONFIG=$apt_room/apt.conf
  # A mirror that lacks the suite (one for security updates, say) is no failure as long as another one has it.
  apt-get -q update >>"$log" 2>&1 || true
  (cd "$apt_room" && apt-get -q download "$@") >>"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "could not download $* of $suite; see $log"
  }
  unset APT_CONFIG
}

unpack_emscripten() {
  local package loader libraries program
  install clang-19 lld-19 llvm-19 node-acorn
  echo "unpacking emscripten and binaryen of $suite into build/emscripten (log: $log)"
  download_from_suite emscripten binaryen libc6 libstdc++6 libgcc-s1
  for package in "$room"/apt/*.deb; do dpkg-deb --extract "$package" "$room/root"; done
  rm -rf "$room/apt"

  loader=$(find "$room/root" -name 'ld-linux*.so.*' -print -quit)
  libraries=$(find "$room/root" -name 'libc.so.6' -printf '%h:' && find "$room/root" -name 'libstdc++.so.6' -printf '%h')
  [ -n "$loader" ] && [ -n "$libraries" ] || fail "libc6 of $suite holds no loader"
  mkdir -p "$room/binaryen/bin"
  for program in "$room"/root/usr/bin/wasm*; do
    write_program "$room/binaryen/bin/${program##*/}" "$loader" --library-path "$libraries" "$program"
  done

  local home=$room/root/usr/share/emscripten
  mkdir -p "$home/node_modules"
  cp -rL /usr/share/nodejs/acorn "$home/node_modules/"
  cat >"$room/config" <<CONFIG
EMSCRIPTEN_ROOT = '$home'
LLVM_ROOT = '$(dirname "$(command -v clang-19)")'
LLVM_ADD_VERSION = '19'
CLANG_ADD_VERSION = '19'
BINARYEN_ROOT = '$room/binaryen'
NODE_JS = '$(command -v node)'
FROZEN_CACHE = True
CACHE = '$home/cache'
CONFIG
  write_program "$emcc" env EM_CONFIG="$room/config" python3 "$home/emcc.py"
  cp "$room/binaryen/bin/wasm-opt" "$room/wasm-opt"
  echo '{}' >"$room/package.json" # else Node finds the project's, which makes modules of Emscripten's scripts
}

# wasm-opt belongs to the emcc on PATH, which knows where it is.
use_path() {
  write_program "$emcc" "$(command -v emcc)"
  local binaryen
  binaryen=$(em-config BINARYEN_ROOT)/bin/wasm-opt
  [ -x "$binaryen" ] || binaryen=$(command -v wasm-opt) || fail "emcc is there, but no wasm-opt"
  write_program "$room/wasm-opt" "$binaryen"
}

# ---------------------------------------------------------------- in that order

have node || install nodejs
have python3 || install python3

if have emcc && new_enough "$(version_of emcc)"; then
  use_path
elif have apt-get && new_enough "$(candidate emscripten | sed 's/[^0-9.].*//')"; then
  install emscripten
  use_path
elif [ -n "$(candidate clang-19)" ]; then
  unpack_emscripten
else
  fail "needs Emscripten $oldest or newer: none on PATH, and apt has neither that nor clang-19; install it and run again"
fi

# The proof: a program with a relaxed instruction compiles.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/relaxed.c" <<'PROGRAM'
#include <wasm_simd128.h>
int dot(const int *p) {
  v128_t a = wasm_v128_load(p), b = wasm_v128_load(p + 4);
  return wasm_i32x4_extract_lane(wasm_i32x4_relaxed_dot_i8x16_i7x16_add(a, b, a), 0);
}
PROGRAM
"$emcc" -O3 -msimd128 -mrelaxed-simd -sSTANDALONE_WASM --no-entry -sEXPORTED_FUNCTIONS=_dot -o "$scratch/relaxed.wasm" \
  "$scratch/relaxed.c" >>"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "$emcc does not compile relaxed SIMD; see $log"
}
printf '%s\n' "$wanted" >"$stamp"
