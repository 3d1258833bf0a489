#!/bin/sh
# A compiler launcher (CMAKE_CXX_COMPILER_LAUNCHER) that compiles the implementation only once for
# several consumers: a file that is the same after preprocessing as one before, with the same
# options, gets a copy of its object. Files other than the implementation are just compiled.
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
        *codeexec-impl.cpp | */implementation.cpp) source=$argument ;;
        -o | -MT | -MF | -MD | -isystem | -I* | -c) ;;
        *) options="$options $argument" ;;
      esac
      ;;
  esac
  previous=$argument
done
[ -n "$source" ] && [ -n "$output" ] || exec "$@"

mkdir -p "$SHARED"
text=$SHARED/text.$$
# The same command with -E: it writes the dependencies, too.
previous=
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  [ "$previous" = -o ] && set -- "$@" "$text" || set -- "$@" "$argument"
  previous=$argument
  count=$((count - 1))
done
"$@" -E -P
key=$({ echo "$options" && cat "$text"; } | cksum | tr ' ' -)
rm -f "$text"
if [ ! -f "$SHARED/$key.o" ]; then
  # Back to the real output.
  previous=
  count=$#
  while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$previous" = -o ] && set -- "$@" "$SHARED/$key.tmp" || set -- "$@" "$argument"
    previous=$argument
    count=$((count - 1))
  done
  "$@"
  mv "$SHARED/$key.tmp" "$SHARED/$key.o"
fi
cp "$SHARED/$key.o" "$output"
