#!/bin/sh
# A compiler that writes down when it compiles the whole implementation from the joined header:
#   sh tests/helpers/counted.sh install DIRECTORY LIST COMPILER...
# That leaves DIRECTORY/COMPILER for each compiler that is found. They run it, and append to LIST a
# line for each source with CODEEXEC_IMPLEMENTATION, unless its header has some sections only.
set -eu
if [ "$1" = install ]; then
  self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
  directory=$2 list=$3
  shift 3
  mkdir -p "$directory"
  for name; do
    real=$(command -v "$name") && [ "${real%/*}" != "$directory" ] || continue
    printf '#!/bin/sh\nexec sh "%s" "%s" "%s" "$@"\n' "$self" "$list" "$real" \
      > "$directory/${name##*/}"
    chmod +x "$directory/${name##*/}"
  done
  exit
fi

list=$1 real=$2
shift 2
header= flags= defined=no previous=
for argument; do
  [ "$previous" != -I ] || argument=-I$argument
  case $argument in
    -E | -M | -MM | -DCODEEXEC_IMPLEMENTED*) exec "$real" "$@" ;;
    -DCODEEXEC_IMPLEMENTATION*) defined=yes ;;
    -I?*) [ -n "$header" ] || [ ! -f "${argument#-I}/codeexec.hpp" ] || header=${argument#-I} ;;
    -std=* | -stdlib=* | -O* | -fsanitize=* | -fno-exceptions) flags="$flags $argument" ;;
  esac
  previous=$argument
done
if [ -z "$header" ] || ! sed 2q "$header/codeexec.hpp" | grep -q 'join\.py --only'; then
  for argument; do
    case $argument in
      *.cpp) [ $defined = no ] && ! grep -qs '^#define CODEEXEC_IMPLEMENTATION' "$argument" ||
        echo "${real##*/}$flags $argument" >> "$list" ;;
    esac
  done
fi
exec "$real" "$@"
