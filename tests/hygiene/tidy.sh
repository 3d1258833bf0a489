# clang-tidy finds nothing in the library, with the checks of .clang-tidy. It reads the header as it
# is joined, as each section for itself would read the system's headers again.
#   [CLANG_TIDY=clang-tidy] sh tests/hygiene/tidy.sh
. "$(dirname "$0")/lib.sh"

CLANG_TIDY=${CLANG_TIDY:-clang-tidy}
for program in "$CLANG_TIDY" python3; do
  command -v "$program" > "$OUT/which" || {
    skip "$program is not installed (Debian: clang-tidy, python3)"
    exit 0
  }
done
# tidy FILE: what it finds, each with the part of src/ that it is in
tidy() {
  status=0
  "$CLANG_TIDY" --quiet --config-file="$ROOT/.clang-tidy" "$1" -- -std=c++17 \
    -DCODEEXEC_IMPLEMENTATION > "$OUT/found" 2> "$OUT/tidy.log" || status=$?
  awk 'NR == FNR { if (/^\/\/ [a-z]+\/[a-z0-9_]+\.[ch]pp -+$/) part = $2; parts[FNR] = part; next }
    split($1, place, ":") > 2 && place[2] in parts { print "src/" parts[place[2]] ":" }
    { print }' "$1" "$OUT/found" > "$OUT/findings"
  return $status
}

# A finding is seen, and where.
{
  echo "// json/wrong.cpp -----"
  echo "const char* nothing() { return 0; }"
} > "$OUT/wrong.cpp"
if tidy "$OUT/wrong.cpp"; then
  fail "clang-tidy does not see a mistake"
else
  expect "clang-tidy sees a mistake" grep -q modernize-use-nullptr "$OUT/findings"
  expect "the part of a mistake is named" grep -qx 'src/json/wrong.cpp:' "$OUT/findings"
fi

expect "src/join.py makes a header of all sections" \
  sh -c "python3 -B '$ROOT/src/join.py' --only tools > '$OUT/library.cpp'"
if tidy "$OUT/library.cpp"; then
  ok "clang-tidy finds nothing in src/"
else
  fail "clang-tidy finds in src/:"
  head -n 60 "$OUT/findings"
  tail -n 5 "$OUT/tidy.log"
fi
finish
