#!/bin/sh
# The page of --report in a real browser: Chromium without a screen, driven by Playwright from PyPI:
#   [CODEEXEC_MCP=build/codeexec-mcp] [OUT=build/report] sh tests/report/run.sh [--bench]
# It leaves pictures of the page in OUT, for eyes. With --bench it says how long a page of 10,000
# commands takes to open, and tests nothing. Each step prints "ok: ...", "FAILED: ..." or, where
# there is no browser, "SKIPPED: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/report}
CODEEXEC_MCP=${CODEEXEC_MCP:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/codeexec-mcp}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export CODEEXEC_MCP OUT

skip() {
  echo "SKIPPED: report: $1"
  exit 0
}
[ -x "$CODEEXEC_MCP" ] || { echo "FAILED: there is no server at $CODEEXEC_MCP" && exit 1; }
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "there is no Chromium (Debian: chromium)"
export CHROMIUM
stamp=$OUT/python/requirements.txt
cmp -s "$here/requirements.txt" "$stamp" || {
  rm -rf "$OUT/python"
  { python3 -m venv "$OUT/python" && "$OUT/python/bin/python" -m pip install --quiet \
    --disable-pip-version-check -r "$here/requirements.txt"; } > "$OUT/python.log" 2>&1 ||
    skip "playwright cannot be had: $OUT/python.log"
  cp "$here/requirements.txt" "$stamp"
}
python3 "$here/sample.py" 600 > "$OUT/sample.jsonl"
python3 "$here/sample.py" 10000 > "$OUT/large.jsonl"
for name in sample large; do
  "$CODEEXEC_MCP" --report "$OUT/$name.jsonl" --output "$OUT/$name.html" > "$OUT/$name.log" ||
    { cat "$OUT/$name.log" && echo "FAILED: no page of $name.jsonl" && exit 1; }
done
exec "$OUT/python/bin/python" "$here/browser.py" "$@"
