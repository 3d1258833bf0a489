#!/bin/sh
# Installs what the everyday tasks use and Debian does not have:
#   sh tests/everyday/install.sh DIRECTORY [--heavy]
#
# uv from PyPI, pnpm and vite from the npm registry: about 150 MB. With --heavy also what takes more
# than that or is seldom there: a kernel of Jupyter and playwright-core, and, as root, Debian's
# Chromium, LaTeX, ffmpeg, Gradle, Maven with a JDK, and PostgreSQL. What is there already is left
# as it is; what cannot be had is said, and its tasks say that they are skipped.
set -eu
[ $# -ge 1 ] || {
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
}
tools=$1
heavy=${2:-}
mkdir -p "$tools/node"
log=$tools/install.log
: > "$log"

# get WHAT COMMAND...
get() {
  what=$1
  shift
  "$@" >> "$log" 2>&1 || echo "could not install $what: $log"
}
# The system's Python is the one that every user has.
python=/usr/bin/python3
[ -x $python ] || python=python3
pip() {
  [ -x "$tools/python/bin/python" ] || "$python" -m venv "$tools/python"
  "$tools/python/bin/python" -m pip install -q --disable-pip-version-check "$@"
}
npm_install() {
  (cd "$tools/node" && npm install --no-audit --no-fund --no-update-notifier "$@")
}

[ -x "$tools/python/bin/uv" ] || get uv pip uv
[ -x "$tools/node/node_modules/.bin/vite" ] || get "pnpm and vite" npm_install pnpm vite
[ "$heavy" = --heavy ] || exit 0
[ -x "$tools/python/bin/jupyter" ] || get "Jupyter's kernel" pip ipykernel jupyter-client nbclient
[ -d "$tools/node/node_modules/playwright-core" ] ||
  get playwright-core npm_install playwright-core
# want PROGRAM PACKAGE: as root, a Debian package when the program is not there.
want() {
  command -v "$1" >> "$log" || get "$2" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "$2"
}
want chromium chromium
want pdflatex texlive-latex-base
want ffmpeg ffmpeg
want javac default-jdk-headless
want mvn maven
want gradle gradle
ls /usr/lib/postgresql/*/bin/initdb >> "$log" 2>&1 || want initdb postgresql
