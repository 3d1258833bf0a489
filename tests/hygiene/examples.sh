# What the examples and the README promise a newcomer: each example is built by the one command in
# its first comment, in a copy of the repository, and examples/quickstart.sh works there.
. "$(dirname "$0")/lib.sh"

rm -rf "$OUT/copy"
mkdir -p "$OUT/copy"
cp -R "$HEADER" "$ROOT/examples" "$OUT/copy/"
# The commands say c++; here that is the compiler of the build. It does not optimise, whatever they
# ask for: that they work is all that is looked at here.
mkdir -p "$OUT/bin"
printf '#!/bin/sh\nexec "%s" "$@" -O0\n' "$CXX" > "$OUT/bin/c++"
chmod +x "$OUT/bin/c++"
PATH=$OUT/bin:$PATH
cd "$OUT/copy"

for example in examples/*.cpp; do
  command=$(awk '!/^\/\// { exit } sub(/^\/\/ +/, "") && /^c\+\+ /' "$example")
  case $command in
    *"$example"*) expect "$example: builds as it says" sh -c "$command" ;;
    *) fail "$example: its first comment must hold one line: c++ ... $example ..." ;;
  esac
done
if [ -f examples/quickstart.sh ]; then
  expect "examples/quickstart.sh works" env CXX=c++ sh examples/quickstart.sh
else
  fail "there is no examples/quickstart.sh"
fi
finish
