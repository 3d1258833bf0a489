#!/bin/sh
# A compiler launcher (CMAKE_CXX_COMPILER_LAUNCHER) that compiles the implementation only once for
# several consumers: a file that is the same after preprocessing as one before, with the same
# options, gets a copy of its object. It knows the joined implementation, its wings and its sections
# by their names; other files are just compiled.
#   SHARED=DIR sh share.sh COMPILER ARGUMENT...
set -eu
# Split the command: what is compiled to where, and the options that decide what comes out.
output= source= options= previous=
for argument; do
  case $previous in
    -o) output=$argument ;;
    -MT | -MF | -isystem) ;;
    *)
      case $argument in
        */codeexec-*.cpp | */implementation.cpp | */sections/*.cpp) source=$argument ;;
        -o | -MT | -MF | -MD | -isystem | -I* | -c) ;;
        *) options="$options $argument" ;;
      esac
      ;;
  esac
  previous=$argument
done
[ -n "$source" ] && [ -n "$output" ] || exec "$@"

mkdir -p "$SHARED"
# run_to FILE COMPILER ARGUMENT...: the same command with another output
run_to() {
  other=$1
  shift
  previous=
  count=$#
  while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$previous" = -o ] && set -- "$@" "$other" || set -- "$@" "$argument"
    previous=$argument
    count=$((count - 1))
  done
  "$@"
}
text=$SHARED/text.$$
# This writes the dependencies, too.
run_to "$text" "$@" -E -P
key=$({ echo "$options" && cat "$text"; } | cksum | tr ' ' -)
rm -f "$text"
if [ ! -f "$SHARED/$key.o" ]; then
  run_to "$SHARED/$key.tmp" "$@"
  mv "$SHARED/$key.tmp" "$SHARED/$key.o"
fi
cp "$SHARED/$key.o" "$output"
