# Packages of npm and PyPI that a test brings into $OUT; sourced, with $OUT set.

# An environment of Python, made anew when its requirements change.
python_environment() { # NAME REQUIREMENTS
  environment=$OUT/$1
  requirements=$2
  cmp -s "$requirements" "$environment/requirements.txt" && return 0
  rm -rf "${environment:?}"
  python3 -m venv "$environment" > "$environment.log" 2>&1 || return 1
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r "$requirements" >> "$environment.log" 2>&1 || return 1
  cp "$requirements" "$environment/requirements.txt"
}

# Node.js as the system has it, or a newer one from npm beside it.
node_major() { node -p 'process.versions.node.split(".")[0]' 2> "$OUT/probe.log" || echo 0; }
newer_node() { # MAJOR
  newer=$OUT/newer-node/node_modules/.bin
  [ -x "$newer/node" ] ||
    npm install --prefix "$OUT/newer-node" --no-package-lock --no-audit --no-fund node@22.23.3 \
      > "$OUT/newer-node.log" 2>&1 || return 1
  PATH=$newer:$PATH
  [ "$(node_major)" -ge "$1" ]
}
