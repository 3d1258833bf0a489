# What is made from the table of options: docs/options.md, the man page and the completions are what
# docs/options.py makes of the program now; readers of man pages find nothing wrong; the shells that
# are here complete by them.
. "$(dirname "$0")/lib.sh"

if ! command -v python3 > "$OUT/which"; then
  skip "python3 is not installed"
  exit 77
fi
docs=$ROOT/docs
page=$docs/codeexec-mcp.1
expect "options.md, man page and completions are what docs/options.py makes of this program" \
  python3 -B "$docs/options.py" --check "$CODEEXEC_MCP"
# One that is not is seen.
rm -rf "$OUT/docs"
mkdir -p "$OUT/docs/completions"
cp "$docs/options.py" "$docs/options.md" "$page" "$OUT/docs"
cp "$docs"/completions/* "$OUT/docs/completions"
expect "a copy of them is as good" python3 -B "$OUT/docs/options.py" --check "$CODEEXEC_MCP"
sed -i.before 's/`--timeout SECONDS`/`--timeout SECOND`/' "$OUT/docs/options.md"
if python3 -B "$OUT/docs/options.py" --check "$CODEEXEC_MCP" > "$OUT/check.log"; then
  fail "a changed options.md is taken for the made one"
else
  expect "a changed one is named" grep -q '^docs/options.md: ' "$OUT/check.log"
fi

if command -v mandoc > "$OUT/which"; then
  expect "mandoc has no warning" mandoc -Tlint -Wwarning "$page"
else
  skip "mandoc is not installed"
fi
if command -v groff > "$OUT/which"; then
  groff -man -ww -Tutf8 -z "$page" > "$OUT/groff.log" 2>&1 || echo "status $?" >> "$OUT/groff.log"
  expect_empty "groff has no warning" "$OUT/groff.log"
else
  skip "groff is not installed"
fi

for shell in bash zsh fish; do
  if ! command -v "$shell" > "$OUT/which"; then
    skip "$shell is not installed"
    continue
  fi
  expect "$shell completes options, choices, directories and files" \
    python3 -B "$here/completions.py" "$shell" "$docs/completions"
done
finish
