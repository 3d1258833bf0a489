#!/bin/sh
# Compiles the implementation from the parts in src/, a file per section, two at a time:
#   sh tests/helpers/sections.sh DIRECTORY COMPILER FLAG...
# It leaves DIRECTORY/SECTION.o. What is newer than all of src/ and made by the same command stays.
set -eu
src=$(cd "$(dirname "$0")/../../src" && pwd)
directory=$1
shift
mkdir -p "$directory"
echo "$*" > "$directory/made-by.new"
cmp -s "$directory/made-by.new" "$directory/made-by" || rm -f "$directory"/*.o
mv "$directory/made-by.new" "$directory/made-by"
: > "$directory/stale"
sections=" "
included='^#include "\([a-z]*\)/[a-z0-9_]*\.cpp"$'
for section in $(sed -n "s|$included|\1|p" "$src/frame.hpp" | uniq); do
  object=$directory/$section.o
  sections="$sections$section "
  [ ! -f "$object" ] || [ -n "$(find "$src" -newer "$object")" ] || continue
  rm -f "$object"
  grep "^#include \"$section/[a-z0-9_]*\\.cpp\"\$" "$src/frame.hpp" > "$directory/$section.cpp"
  echo "$section" >> "$directory/stale"
done
for object in "$directory"/*.o; do
  section=$(basename "$object" .o)
  case $sections in
    *" $section "*) ;;
    *) rm -f "$object" ;;
  esac
done
xargs -P 2 -I '{}' "$@" -I"$src" -c "$directory/{}.cpp" -o "$directory/{}.o" < "$directory/stale"
