#!/bin/sh
# A Docker engine of its own for the tests, beside every other engine of the machine:
#
#   tests/helpers/engine.sh start DIR    starts it, unless it runs; prints its DOCKER_HOST
#   tests/helpers/engine.sh images DIR   makes the images of the tests; what is there is used again
#   tests/helpers/engine.sh stop DIR     ends it with all that runs in it or is left, and removes it
#
# All that it has is below DIR, apart from a network bridge. Its containers reach this machine over
# that bridge and nothing else: no rule of the firewall is touched; those with --network host reach
# what this machine does. It sees what was mounted when it was started. It needs root, dockerd,
# docker, containerd, runc and a static busybox; for the images debootstrap, and to reach Debian's
# mirror, PyPI and npm. It installs nothing itself.
#
#   codeexec-test/busybox         busybox and its links, and nothing else, not even a /tmp
#   codeexec-test/musl            the same with musl, as Debian packs it, for its library
#   codeexec-test/empty           nothing but /program, which is a static busybox
#   codeexec-test/base            a small Debian 12 with Python, pip, git and curl
#   codeexec-test/debian          the same, with a user `agent`, uid 1000
#   codeexec/runtime, codeexec/runtime-sudo, codeexec/executor    those of docker/, on that Debian
set -eu

usage() {
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
}
fail() {
  echo "tests/helpers/engine.sh: $1" >&2
  exit 1
}
[ $# = 2 ] && [ -n "$2" ] || usage
case $1 in
  start | images | stop) ;;
  make_*) ;;  # a part of `images`, as a program of its own: a step that fails ends it
  *) usage ;;
esac
[ "$(id -u)" = 0 ] || fail "an engine needs root: sudo sh tests/helpers/engine.sh $1 $2"
[ "$1" != stop ] || [ -e "$2" ] || exit 0
[ "$1" != start ] || mkdir -p "$2"
[ -d "$2" ] || fail "there is no folder $2: sudo sh tests/helpers/engine.sh start $2"

root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(cd "$2" && pwd -P)
# Sockets are made below it, and the system limits the length of their paths.
[ ${#dir} -le 64 ] || fail "the path $dir is too long for an engine: 64 bytes at most"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# What this starts is found again by this mark in its environment, whatever becomes of this script.
CODEEXEC_ENGINE=$dir
DOCKER_HOST=unix://$dir/docker.sock
# Nothing that a user has set up for another one.
DOCKER_CONFIG=$dir/config
export PATH CODEEXEC_ENGINE DOCKER_HOST DOCKER_CONFIG
unset DOCKER_CONTEXT DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH BUILDX_BUILDER CODEEXEC_DOCKER

# Of each path another bridge and, of the range that is kept for benchmarks, other addresses.
number=$(printf %s "$dir" | cksum | cut -d ' ' -f 1)
bridge=codeexec$((number % 65536))
address=198.$((18 + number % 2)).$((number / 2 % 256)).1/24

# what is there ------------------------------------------------------------------------------------

has_mark() {
  { tr '\0' '\n' < "/proc/$1/environ" | grep -qxF "CODEEXEC_ENGINE=$dir"; } 2> /dev/null
}
# Every process with the mark, but for this one.
marked() {
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    if [ "$pid" != $$ ] && has_mark "$pid"; then echo "$pid"; fi
  done
}
# Processes in the containers of this engine, which have no mark.
contained() {
  for container in "$dir"/data/containers/*; do
    [ -d "$container" ] || continue
    grep -lF "${container##*/}" /proc/[0-9]*/cgroup 2> /dev/null | cut -d / -f 3
  done
}
# The engine's process, or nothing. A pid in a file may long be that of somebody else.
engine_pid() {
  [ -s "$dir/pid" ] || return 0
  pid=$(cat "$dir/pid")
  if [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = dockerd ] && has_mark "$pid"; then echo "$pid"; fi
}
answers() { docker version > "$dir/probe.log" 2>&1; }
# Runs a program whose mounts nobody else sees, and which end with it: not even `rm -r` of a folder
# in which all of this was killed can then go astray in them.
alone() { busybox setsid busybox unshare --mount --propagation slave "$@"; }
unmount_below() {
  awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/self/mounts | sort -r |
    while IFS= read -r mount; do umount "$mount" 2> /dev/null || umount -l "$mount"; done
}

# start --------------------------------------------------------------------------------------------

start() {
  missing=
  for program in dockerd docker containerd runc busybox; do
    command -v $program > /dev/null || missing="$missing $program"
  done
  [ -z "$missing" ] ||
    fail "missing:$missing (Debian: apt-get install docker.io docker-cli busybox-static)"
  if [ ! -e "$dir/engine" ]; then
    [ -z "$(ls -A "$dir")" ] || fail "$dir is neither empty nor the folder of such an engine"
    : > "$dir/engine"
  fi
  if [ -z "$(engine_pid)" ]; then
    clear_away
    busybox brctl addbr "$bridge" || fail "cannot make the network bridge $bridge"
    busybox ip addr add "$address" dev "$bridge"
    busybox ip link set "$bridge" up
    # Not what is configured for another engine, nor in another's part of a containerd they share.
    echo '{}' > "$dir/daemon.json"
    alone dockerd --config-file "$dir/daemon.json" --data-root "$dir/data" \
      --exec-root "$dir/exec" --pidfile "$dir/pid" --host "$DOCKER_HOST" \
      --group "${SUDO_GID:-$(id -g)}" --bridge "$bridge" --iptables=false --ip-forward=false \
      --ip-masq=false --containerd-namespace "$bridge" \
      --containerd-plugins-namespace "$bridge-plugins" > "$dir/log" 2>&1 < /dev/null &
    engine=$!
  fi
  tries=300
  until answers; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || break
    kill -0 "${engine:-$(engine_pid)}" 2> /dev/null || break
    sleep 0.2
  done
  answers || {
    tail -n 20 "$dir/log" >&2
    fail "the engine did not start; its log is above and in $dir/log"
  }
  echo "$DOCKER_HOST"
}

# images -------------------------------------------------------------------------------------------

image_exists() { docker image inspect "$1" > /dev/null 2>&1; }
# quietly WHAT COMMAND...: its output is shown when it fails.
quietly() {
  what=$1
  shift
  echo "== $what"
  "$@" > "$dir/images.log" 2>&1 || {
    tail -n 40 "$dir/images.log" >&2
    fail "$what: failed; the end of its output is above"
  }
}
remove_tree() {
  unmount_below "$dir/tree"
  rm -rf --one-file-system "$dir/tree"
}
import_tree() { tar -C "$dir/tree" -c . | docker import - "$1"; }

busybox_tree() {
  remove_tree
  for folder in bin dev etc home proc root sys; do mkdir -p "$dir/tree/$folder"; done
  cp "$(command -v busybox)" "$dir/tree/bin/busybox"
  for applet in $(busybox --list); do
    [ "$applet" = busybox ] || ln -s busybox "$dir/tree/bin/$applet"
  done
  echo root:x:0:0:root:/root:/bin/sh > "$dir/tree/etc/passwd"
  echo root:x:0: > "$dir/tree/etc/group"
}
make_busybox() {
  busybox_tree
  import_tree codeexec-test/busybox:latest
  remove_tree
}
make_musl() {
  busybox_tree
  url=$(mirror)
  curl -fsSL "$url/dists/bookworm/main/binary-$(dpkg --print-architecture)/Packages.xz" | xz -d |
    awk '/^Package: / { found = $2 == "musl" } found && /^Filename: / { print $2 }' \
      > "$dir/probe.log"
  curl -fsSL -o "$dir/musl.deb" "$url/$(cat "$dir/probe.log")"
  dpkg-deb -x "$dir/musl.deb" "$dir/tree"
  rm "$dir/musl.deb"
  import_tree codeexec-test/musl:latest
  remove_tree
}
make_empty() {
  remove_tree
  mkdir "$dir/tree"
  cp "$(command -v busybox)" "$dir/tree/program"
  import_tree codeexec-test/empty:latest
  remove_tree
}
# The mirror that this machine uses, when it is a Debian's.
mirror() {
  for url in $(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /etc/apt/sources.list.d/*.sources 2> /dev/null | grep -E '^(deb|URIs:) ' |
    grep -oE 'https?://[^ ]+') http://deb.debian.org/debian; do
    # Nobody but Debian has these.
    ! curl -fsL -m 20 -o "$dir/probe.log" "$url/dists/bookworm-updates/Release" || break
  done
  echo "$url"
}
make_base() {
  remove_tree
  alone debootstrap --variant=minbase --include="python3,python3-pip,python3-venv,procps,git,\
ca-certificates,curl,dash,bash" bookworm "$dir/tree" "$(mirror)"
  rm -rf "$dir"/tree/var/cache/apt/archives/*.deb "$dir"/tree/var/lib/apt/lists/*
  # Whom this machine trusts beside everybody: builds reach the network as it does.
  for certificate in /usr/local/share/ca-certificates/*.crt; do
    [ ! -f "$certificate" ] || cp "$certificate" "$dir/tree/usr/local/share/ca-certificates/"
  done
  chroot "$dir/tree" update-ca-certificates
  import_tree codeexec-test/base:latest
  remove_tree
}
make_debian() {
  printf '%s\n' 'FROM codeexec-test/base:latest' \
    'RUN useradd --create-home --uid 1000 --shell /bin/bash agent' |
    docker build -t codeexec-test/debian:latest -
}
images() { exec sh "$0" make_images "$dir"; }
make_images() {
  answers || fail "no engine runs in $dir: sudo sh tests/helpers/engine.sh start $dir"
  for image in busybox musl empty; do
    image_exists codeexec-test/$image || quietly codeexec-test/$image sh "$0" make_$image "$dir"
  done
  if ! image_exists codeexec-test/base; then
    command -v debootstrap > /dev/null ||
      fail "missing: debootstrap (Debian: apt-get install debootstrap)"
    quietly codeexec-test/base sh "$0" make_base "$dir"
  fi
  quietly codeexec-test/debian sh "$0" make_debian "$dir"
  # Layers that are there already are used again.
  build="sh $root/docker/build.sh"
  quietly codeexec/executor $build --executor --base codeexec-test/base:latest -- --network host
  quietly codeexec/runtime $build --base codeexec-test/base:latest -- --network host
  quietly codeexec/runtime-sudo $build --sudo --base codeexec/runtime:latest -- --network host
}

# stop ---------------------------------------------------------------------------------------------

# stop_all SIGNAL PID...: and waits until they are gone, for ten seconds at most.
stop_all() {
  signal=$1
  shift
  [ $# -gt 0 ] || return 0
  kill -s "$signal" "$@" 2> /dev/null || true
  tries=100
  while [ $tries -gt 0 ] && [ -n "$(for pid; do [ ! -d "/proc/$pid" ] || echo "$pid"; done)" ]; do
    tries=$((tries - 1))
    sleep 0.1
  done
}
# Whatever is left of an engine that has ended, or was killed.
clear_away() {
  stop_all KILL $(marked)
  stop_all KILL $(contained)
  unmount_below "$dir"
  ! busybox ip link show "$bridge" > /dev/null 2>&1 || {
    busybox ip link set "$bridge" down
    busybox brctl delbr "$bridge"
  }
  rm -f "$dir/pid" "$dir/docker.sock"
}
stop() {
  [ -e "$dir/engine" ] || fail "$dir is not the folder of such an engine"
  engine=$(engine_pid)
  if [ -n "$engine" ]; then
    # First who makes images or uses them, then the containers, which need not obey, then the rest.
    stop_all KILL $(marked | grep -vxF "$engine" | while read -r pid; do
      case $(cat "/proc/$pid/comm" 2> /dev/null) in containerd*) ;; *) echo "$pid" ;; esac
    done)
    stop_all KILL $(contained)
    stop_all TERM "$engine"
  fi
  clear_away
  rm -rf --one-file-system "$dir/data" "$dir/exec" "$dir/tree" "$dir/config" "$dir/log" \
    "$dir/probe.log" "$dir/images.log" "$dir/daemon.json"
  rm -f "$dir/engine"
  rmdir "$dir"
}

$1
