# The files of .github that GitHub reads have the form that it wants: check-jsonschema of PyPI has
# its schemas. It needs the network once.          [OUT=...] sh tests/hygiene/workflows.sh
. "$(dirname "$0")/lib.sh"

checker=check-jsonschema==0.39.0
[ "$(cat "$OUT/installed" 2> "$OUT/which")" = "$checker" ] || {
  rm -rf "$OUT/python"
  { python3 -m venv "$OUT/python" && "$OUT/python/bin/python" -m pip install --quiet \
    --disable-pip-version-check "$checker"; } > "$OUT/python.log" 2>&1 || {
    skip "$checker cannot be had: $OUT/python.log"
    exit 0
  }
  echo "$checker" > "$OUT/installed"
}
# is_valid SCHEMA FILE...
is_valid() {
  schema=vendor.$1
  shift
  for file; do
    expect "${file#"$ROOT"/} is valid" "$OUT/python/bin/check-jsonschema" \
      --builtin-schema "$schema" "$file"
  done
}
is_valid github-workflows "$ROOT"/.github/workflows/*.yml
is_valid dependabot "$ROOT/.github/dependabot.yml"
is_valid github-issue-config "$ROOT/.github/ISSUE_TEMPLATE/config.yml"
for form in "$ROOT"/.github/ISSUE_TEMPLATE/*.yml; do
  case $form in
    */config.yml) ;;
    *) is_valid github-issue-forms "$form" ;;
  esac
done
finish
