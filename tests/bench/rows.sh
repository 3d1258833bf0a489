# Shared by the benchmarks that are scripts: a row as the other benchmarks have them (report.hpp).
set -eu
LC_ALL=C
export LC_ALL
name=$(basename "$0" .sh)
ROOT=${ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/bench/$name}
CXX=${CXX:-c++}
mkdir -p "$OUT"
failures=0
failed() { printf 'FAILED: %s\n' "$*" && failures=$((failures + 1)); }
# row WHAT VALUE UNIT [RIVAL ITS_VALUE]: with the gate of $limit, if there is one.
limit=
row() {
  printf '%-58s %10s %-8s %s' "$1" "$2" "$3" "${4:+$4: $5}"
  json=$(printf '{"what":"%s","unit":"%s","ours":{"value":%s,"low":%s,"high":%s}' \
    "$1" "$3" "$2" "$2" "$2")
  if [ "${5:-0}" != 0 ]; then
    json=$json$(printf ',"rival":"%s","theirs":{"value":%s,"low":%s,"high":%s},"ratio":%s' \
      "$4" "$5" "$5" "$5" "$(awk "BEGIN { printf \"%.4g\", $2 / $5 }")")
  fi
  if [ -n "$limit" ]; then
    holds=true
    [ "$2" -le "$limit" ] || holds=false
    printf '   (gate: %s)' "$limit"
    json=$json$(printf ',"gate":{"relation":"<=","limit":%s,"value":%s,"holds":%s}' \
      "$limit" "$2" $holds)
  fi
  printf '\n'
  [ -z "$limit" ] || [ $holds = true ] || failed "$1: $2 is more than $limit"
  [ -z "${BENCH_ROWS:-}" ] || printf '%s}\n' "$json" >> "$BENCH_ROWS"
  limit=
}
# How long this shell's children have run that have ended, in milliseconds: $spent.
look_at_clock() {
  times > "$OUT/times"
  spent=$(awk -F '[ms ]' 'NR == 2 { printf "%.0f", 1000 * (60 * ($1 + $4) + $2 + $5) }' \
    "$OUT/times")
}
