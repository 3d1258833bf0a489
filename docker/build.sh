#!/bin/sh
# Builds the images of this folder, from wherever it is called:
#
#   docker/build.sh [option...] [-- argument...]
#
#   (no option)        codeexec/runtime:latest, from Dockerfile
#   --sudo             codeexec/runtime-sudo:latest, from Dockerfile.sudo, and the runtime image for
#                      it, unless --base names another
#   --executor         codeexec/executor:latest, from Dockerfile.executor
#   -n, --name NAME    another name
#   -t, --tag TAG      another tag than latest
#   --base IMAGE       the image to start from; default: what the Dockerfile says
#   --agent FILE       a codeexec-mcp that the image gets as /usr/local/bin/codeexec-mcp, for an
#                      engine that cannot mount this machine's; a server takes it when
#                      $CODEEXEC_PLACE_AGENT is set and empty
#   -h, --help         this text
#
# What comes after -- goes to `docker build`, such as --network host, --no-cache or --pull.
# $CODEEXEC_DOCKER is the program to build with, such as podman; default: docker. $DOCKER_HOST and
# $DOCKER_CONTEXT mean what they always do. The exit status is 0 when all was built, 1 when not, and
# 2 when the command line was wrong.
set -eu

folder=$(cd "$(dirname "$0")" && pwd)
docker=${CODEEXEC_DOCKER:-docker}
kind=runtime name='' tag=latest base='' agent=''

usage() { sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0"; }
usage_error() {
  echo "build.sh: $1 (try --help)" >&2
  exit 2
}
fail() {
  echo "build.sh: $1" >&2
  exit 1
}
choose() {
  [ "$kind" = runtime ] || [ "$kind" = "$1" ] || usage_error "--sudo or --executor, not both"
  kind=$1
}

while [ $# -gt 0 ]; do
  case $1 in
    --sudo) choose runtime-sudo ;;
    --executor) choose executor ;;
    -n | --name | -t | --tag | --base | --agent)
      [ -n "${2:-}" ] || usage_error "$1 needs a value"
      case $1 in
        -n | --name) name=$2 ;;
        -t | --tag) tag=$2 ;;
        --base) base=$2 ;;
        --agent) agent=$2 ;;
      esac
      shift
      ;;
    -h | --help) usage && exit 0 ;;
    --) shift && break ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
[ -z "$agent" ] || [ -f "$agent" ] || fail "--agent: there is no file $agent"

command -v "$docker" > /dev/null ||
  fail "there is no program $docker: install Docker, or set CODEEXEC_DOCKER=podman"
reason=$("$docker" ps -q 2>&1 > /dev/null) || {
  reason=$(echo "$reason" | tail -n 1)
  fail "$docker cannot reach its engine; start it, or set DOCKER_HOST: $reason"
}

# build DOCKERFILE IMAGE BASE ARGUMENT...
build() {
  file=$1
  image=$2
  from=$3
  shift 3
  echo "== $image, from $file${from:+ on $from}"
  "$docker" build ${from:+--build-arg "BASE=$from"} -t "$image" "$@" -f "$folder/$file" \
    "$folder" || fail "$image was not built; the reason stands above"
}

# Another layer of an image that is built.
add_agent() {
  [ -n "$agent" ] || return 0
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  install -m 755 "$agent" "$context/codeexec-mcp"
  printf 'FROM %s\nCOPY codeexec-mcp /usr/local/bin/\n' "$1" > "$context/Dockerfile"
  "$docker" build -t "$1" "$context" || fail "$1 did not get its agent; the reason stands above"
}

made=${name:-codeexec/$kind}:$tag
case $kind in
  runtime) build Dockerfile "$made" "$base" "$@" ;;
  executor) build Dockerfile.executor "$made" "$base" "$@" ;;
  runtime-sudo)
    if [ -z "$base" ]; then
      base=codeexec/runtime:$tag
      build Dockerfile "$base" '' "$@"
    fi
    build Dockerfile.sudo "$made" "$base" "$@"
    ;;
esac
add_agent "$made"
