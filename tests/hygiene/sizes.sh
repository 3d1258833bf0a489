# Runs sizes.py with lizard, which comes from PyPI into a venv of the test.
. "$(dirname "$0")/lib.sh"

if ! command -v python3 > "$OUT/which"; then
  skip "python3 is not installed"
  exit 77
fi
python=$OUT/venv/bin/python
if ! "$python" -c 'import lizard' > "$OUT/probe.log" 2>&1; then
  rm -rf "$OUT/venv"
  if ! { python3 -m venv "$OUT/venv" &&
    "$python" -m pip install --quiet --disable-pip-version-check lizard==1.24.3; } \
    > "$OUT/pip.log" 2>&1; then
    skip "no lizard from python3 -m venv and PyPI: $OUT/pip.log"
    exit 77
  fi
fi
"$python" -B "$here/sizes.py"
