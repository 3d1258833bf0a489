# Pages that are made are what their scripts make, and what stands twice agrees.
. "$(dirname "$0")/lib.sh"

command -v python3 > "$OUT/which" || {
  skip "python3 is not installed"
  exit 77
}
for page in api attacks fuzzing threats; do
  expect "what docs/$page.py makes is what is there" python3 -B "$ROOT/docs/$page.py" --check
done

expect "editors and clang-format have one width" \
  sh -c "grep -qx 'ColumnLimit: 100' '$ROOT/.clang-format' &&
    grep -qx 'max_line_length = 100' '$ROOT/.editorconfig'"

# An action that is named by a tag can become another one.
workflows=$ROOT/.github/workflows
grep -hE '^ *(- )?uses:' "$workflows"/*.yml | grep -vE '@[0-9a-f]{40} # v[0-9.]+$' \
  > "$OUT/loose" || true
expect_empty "actions of the workflows are named by their commit" "$OUT/loose"
for workflow in "$workflows"/*.yml; do
  file=$(basename "$workflow")
  jobs=$(grep -c '^    runs-on:' "$workflow")
  expect "each job of $file has a limit of time" \
    [ "$(grep -c '^    timeout-minutes:' "$workflow")" = "$jobs" ]
  expect "$file may read the sources and nothing else" \
    [ "$(grep -A 1 '^ *permissions:' "$workflow" | tr -d ' \n')" = permissions:contents:read ]
done
expect "each job of ci.yml runs what every commit must pass" \
  [ "$(grep -cE '^ +(run: .*)?\.ci/run$' "$workflows/ci.yml")" = \
  "$(grep -c '^    runs-on:' "$workflows/ci.yml")" ]
finish
