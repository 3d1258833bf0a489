#!/bin/sh
# What a header of some sections costs (python3 src/join.py --only ...), beside the whole one. The
# gates do not depend on how busy the machine is, and times are those of the processor.
#   [CXX=g++] sh tests/bench/sections.sh [option...]
#   --gates      without what is only reported: compiles nothing
#   --rounds N   the best of so many rounds, in which the headers take turns (2)
#   --markdown   ends with the table of docs/embed.md
. "$(dirname "$0")/rows.sh"
gates=no rounds=2 markdown=no
while [ $# -gt 0 ]; do
  case $1 in
    --gates) gates=yes ;;
    --rounds) rounds=$2 && shift ;;
    --markdown) markdown=yes ;;
    *) echo "tests/bench/sections.sh: unknown option $1" >&2 && exit 2 ;;
  esac
  shift
done

command -v python3 > "$OUT/which" || {
  echo "SKIPPED: sections: python3 is not installed"
  exit 0
}
headers="mcp process policy executor all"
: > "$OUT/figures" # HEADER FIGURE VALUE: all that is measured
note() { echo "$1 $2 $3" >> "$OUT/figures"; }
# figure HEADER FIGURE: the least that was measured.
figure() {
  awk -v header="$1" -v name="$2" '$1 == header && $2 == name && (best == "" || $3 < best) {
    best = $3
  } END { print best }' "$OUT/figures"
}
for header in $headers; do
  mkdir -p "$OUT/$header"
  if [ $header = all ]; then
    cp "$ROOT/codeexec.hpp" "$OUT/all/"
  else
    python3 -B "$ROOT/src/join.py" --only $header > "$OUT/$header/codeexec.hpp"
  fi
  note $header lines $(wc -l < "$OUT/$header/codeexec.hpp")
  note $header KiB $((($(wc -c < "$OUT/$header/codeexec.hpp") + 512) / 1024))
done

# So many percent of the whole at most.
share() {
  case $1 in
    mcp) echo 20 ;;
    process) echo 35 ;;
    policy) echo 40 ;;
    executor) echo 75 ;;
  esac
}
# rows FIGURE UNIT WORDS [gate]: one of each header, beside the whole.
rows() {
  all=$(figure all "$1")
  for header in $headers; do
    [ $header != all ] || continue
    limit=${4:+$((all * $(share $header) / 100))}
    row "--only $header: $3" "$(figure $header "$1")" "$2" "the whole header" "$all"
  done
}
rows lines lines "lines" gate
rows KiB KiB "size" gate

# timed HEADER FIGURE COMMAND...
timed() {
  timed_header=$1
  timed_figure=$2
  shift 2
  look_at_clock
  before=$spent
  "$@"
  look_at_clock
  note "$timed_header" "$timed_figure" $((spent - before))
}
# measure HEADER LEVEL: compiles its implementation; how long that takes, and the size of its code.
measure() {
  timed "$1" "time$2" "$CXX" -std=c++17 "$2" -I"$OUT/$1" -c "$OUT/implementation.cpp" \
    -o "$OUT/$1/implementation$2.o"
  note "$1" "text$2" $(($(size "$OUT/$1/implementation$2.o" | awk 'NR == 2 { print $1 }') / 1024))
}
quickstart() {
  rm -rf "$OUT/quickstart"
  CODEEXEC_BUILD_DIR=$OUT sh "$ROOT/examples/quickstart.sh" > "$OUT/quickstart.log" 2>&1 || {
    failed "examples/quickstart.sh ended with status $?"
    cat "$OUT/quickstart.log"
    exit 1
  }
}
if [ $gates = no ]; then
  printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n' > "$OUT/implementation.cpp"
  round=0
  while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    for header in $headers; do
      for level in -O0 -O2; do measure $header $level; done
    done
  done
  timed quickstart time-O2 quickstart
  for header in $headers; do measure $header -Os; done
  for level in -O0 -O2; do rows "time$level" ms "compile the implementation at $level"; done
  for level in -Os -O2; do rows "text$level" KiB "code of the implementation at $level"; done
  row "examples/quickstart.sh: processor time from nothing" "$(figure quickstart time-O2)" ms \
    "the whole header at -O2, in one piece" "$(figure all time-O2)"
  row "examples/quickstart.sh: the server that it makes" \
    "$(wc -c < "$OUT/quickstart/codeexec-mcp")" bytes
fi

if [ $markdown = yes ] && [ $gates = no ]; then
  # cell HEADER FIGURE SCALE UNIT: with the ratio to the whole.
  cell() {
    awk "BEGIN {
      printf \" %.*f${4:+ $4}\", ($3 > 1), $(figure "$1" "$2") / $3
      if (\"$1\" != \"all\") printf \" (%.2f)\", $(figure "$1" "$2") / $(figure all "$2")
      printf \" |\"
    }"
  }
  echo
  echo '| header | its sections | lines | size | compile: -O0 | -O2 | code: -Os | -O2 |'
  echo '|---|---|---|---|---|---|---|---|'
  for header in $headers; do
    made="\`join.py --only $header\`"
    held=$(sed -n 's|^//   \([a-z]*\)  *needs: .*|\1|p' "$OUT/$header/codeexec.hpp")
    [ $header != all ] || made="\`codeexec.hpp\`" held="all $(($(echo "$held" | wc -w)))"
    printf '| %s | %s |' "$made" "$(echo $held)"
    cell $header lines 1 ''
    cell $header KiB 1 KiB
    for level in -O0 -O2; do cell $header "time$level" 1000 s; done
    for level in -Os -O2; do cell $header "text$level" 1 KiB; done
    echo
  done
fi
[ "$failures" -eq 0 ]
