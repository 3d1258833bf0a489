#!/bin/sh
# A Kubernetes of its own, of one node:
#
#   tests/helpers/kubernetes.sh has              are its programs in $CODEEXEC_KUBERNETES_BIN?
#   tests/helpers/kubernetes.sh build            builds them there, for about eight minutes; Go 1.22
#   tests/helpers/kubernetes.sh start DIR        in a new folder; prints the path of a kubeconfig
#   tests/helpers/kubernetes.sh user DIR NAME    prints that of a user who may do nothing yet
#   tests/helpers/kubernetes.sh node DIR down    kills the kubelet; up: starts it again
#   tests/helpers/kubernetes.sh stop DIR
#
# `build` also builds the controller of kubernetes-sigs/agent-sandbox from a checkout of that, when
# $CODEEXEC_AGENT_SANDBOX names one; `start` starts it where it is there.
#
# Needs root and the packages etcd-server, containerd, runc, containernetworking-plugins,
# busybox-static, openssl and kubectl. It listens on ports of 127.0.0.1 that are free now. Images
# come from no registry: localhost/busybox:1 is there. The kubelet sets three sysctls, which `stop`
# sets back.
set -eu
[ $# -ge 1 ] || {
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
}
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
. "$(dirname "$0")/daemons.sh"
version=1.30.14
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}
bin=${CODEEXEC_KUBERNETES_BIN:-$cache/codeexec-kubernetes-$version}
programs="kubelet kube-apiserver kube-scheduler kube-controller-manager"
# The API server reaches the kubelet by this name.
node=localhost
users="one two three four"

has() {
  for program in $programs; do
    [ -x "$bin/$program" ] || return 1
  done
}

# Its webhook only converts from an older version of its objects.
build_sandboxes() {
  (cd "$CODEEXEC_AGENT_SANDBOX" &&
    go build -ldflags "-s -w" -o "$bin/agent-sandbox-controller" ./cmd/agent-sandbox-controller &&
    for file in k8s/crds/*.yaml; do
      echo "---"
      sed '/^  conversion:/,/^  [a-z]*:/{ /^  conversion:/d; /^   /d; }' "$file"
    done > "$bin/agent-sandbox.yaml")
}

build() {
  mkdir -p "$bin"
  work=$(mktemp -d)
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=mod" GOPATH="$work/go" GOCACHE="$work/cache"
  if [ -n "${CODEEXEC_AGENT_SANDBOX:-}" ] && [ ! -x "$bin/agent-sandbox-controller" ]; then
    build_sandboxes || return 1
  fi
  ! has || return 0
  {
    echo "module codeexec.test/kubernetes"
    echo "go 1.22.0"
    echo "require k8s.io/kubernetes v$version"
    for module in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go \
      cloud-provider cluster-bootstrap code-generator component-base component-helpers \
      controller-manager cri-api csi-translation-lib dynamic-resource-allocation endpointslice kms \
      kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet \
      legacy-cloud-providers metrics mount-utils pod-security-admission sample-apiserver \
      sample-cli-plugin sample-controller; do
      echo "replace k8s.io/$module => k8s.io/$module v0${version#1}"
    done
  } > "$work/go.mod"
  cd "$work"
  stamp=k8s.io/component-base/version
  set --
  for program in $programs; do
    set -- "$@" "k8s.io/kubernetes/cmd/$program"
  done
  go build -tags providerless -ldflags "-s -w -X $stamp.gitVersion=v$version \
-X $stamp.gitMajor=1 -X $stamp.gitMinor=30" -o "$bin/" "$@"
}

kubectl_here() { HOME=$dir kubectl --kubeconfig="$dir/admin.kubeconfig" "$@"; }
in_containerd() { ctr -a "$dir/containerd.sock" -n k8s.io "$@"; }
is_ready() { [ "$(kubectl_here get --raw /readyz)" = ok ]; }
node_is_ready() { kubectl_here get node $node | grep -qw Ready; }
has_account() { kubectl_here get serviceaccount default; }

# kubeconfig_of NAME TOKEN
kubeconfig_of() {
  cat > "$dir/$1.kubeconfig" << END
apiVersion: v1
kind: Config
clusters:
- {name: test, cluster: {server: "https://127.0.0.1:$api", insecure-skip-tls-verify: true}}
users: [{name: $1, user: {token: $2}}]
contexts: [{name: test, context: {cluster: test, user: $1}}]
current-context: test
END
}

# Busybox, as the image that pods have and as that which holds their network.
make_image() {
  python3 - "$dir/image.tar" << 'END'
import hashlib, io, json, os, subprocess, sys, tarfile

def add(tar, name, content=b"", mode=0o755, kind=tarfile.REGTYPE, link=""):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.type, entry.linkname = len(content), mode, kind, link
    tar.addfile(entry, io.BytesIO(content))

layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode="w") as tar:
    for name, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
        add(tar, name, mode=mode, kind=tarfile.DIRTYPE)
    add(tar, "bin/busybox", open("/bin/busybox", "rb").read())
    for name in subprocess.check_output(["/bin/busybox", "--list"], text=True).split():
        if name != "busybox":
            add(tar, "bin/" + name, kind=tarfile.SYMTYPE, link="busybox")
    users = b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n"
    add(tar, "etc/passwd", users, 0o644)
    add(tar, "etc/group", b"root:x:0:\nuser:x:1000:\n", 0o644)
layer = layer.getvalue()
digest = hashlib.sha256(layer).hexdigest()
machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
manifest = []
with tarfile.open(sys.argv[1], "w") as out:
    add(out, digest + "/layer.tar", layer)
    for tag, command in (("pause", ["/bin/sleep", "2000000000"]), ("busybox", ["/bin/sh"])):
        config = json.dumps({
            "architecture": machine, "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": command},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        add(out, name, config)
        manifest.append({"Config": name, "RepoTags": [f"localhost/{tag}:1"],
                         "Layers": [digest + "/layer.tar"]})
    add(out, "manifest.json", json.dumps(manifest).encode())
END
}

write_files() {
  cat > "$dir/containerd.toml" << END
version = 2
root = "$dir/containerd/root"
state = "$dir/containerd/state"
oom_score = 0
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
END
  # Pods have a network of their own in which nothing is but themselves.
  mkdir -p "$dir/cni"
  cat > "$dir/cni/10-ptp.conflist" << END
{"cniVersion": "0.4.0", "name": "codeexec", "plugins": [{"type": "ptp", "ipam": {
  "type": "host-local", "ranges": [[{"subnet": "10.88.77.0/24"}]], "dataDir": "$dir/ipam"}}]}
END
  # The API server is the only one that the kubelet obeys.
  openssl genrsa -out "$dir/accounts.key" 2048
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=apiserver -days 30 \
    -keyout "$dir/client.key" -out "$dir/client.crt"
  cat > "$dir/kubelet.yaml" << END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $kubelet
healthzPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: "$dir/client.crt"}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$dir/containerd.sock
cgroupDriver: cgroupfs
enforceNodeAllocatable: [pods]
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "50Mi", nodefs.available: "1%", imagefs.available: "1%"}
maxPods: 100
syncFrequency: 5s
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 4
END
}

start_kubelet() {
  start_daemon kubelet "$bin/kubelet" --config="$dir/kubelet.yaml" \
    --kubeconfig="$dir/node.kubeconfig" --hostname-override=$node --root-dir="$dir/kubelet"
}

start_all() {
  has || {
    echo "kubernetes.sh: there are no programs in $bin" >&2
    return 1
  }
  # shellcheck disable=SC2046
  set -- $(python3 -c 'import socket
all = [socket.socket() for _ in range(5)]
for one in all: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in all])')
  etcd=$1 peer=$2 api=$3 kubelet=$4 controllers=$5
  chmod 700 "$dir"
  [ -s "$dir/sysctls" ] ||
    sysctl vm.overcommit_memory kernel.panic kernel.panic_on_oops > "$dir/sysctls"
  write_files > "$dir/files.log" 2>&1
  admin=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
  {
    echo "$admin,admin,1,\"system:masters\""
    echo "$admin-node,system:node:$node,2,\"system:nodes\""
    for user in $users; do
      echo "$admin-$user,$user,$user"
    done
  } > "$dir/tokens.csv"
  kubeconfig_of admin "$admin"
  kubeconfig_of node "$admin-node"
  for user in $users; do
    kubeconfig_of "$user" "$admin-$user"
  done
  start_daemon etcd etcd --name one --data-dir "$dir/etcd" --unsafe-no-fsync \
    --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls "http://127.0.0.1:$etcd" \
    --listen-peer-urls "http://127.0.0.1:$peer" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
    --initial-cluster "one=http://127.0.0.1:$peer"
  start_daemon containerd containerd -c "$dir/containerd.toml"
  start_daemon apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$api" \
    --cert-dir="$dir/pki" --token-auth-file="$dir/tokens.csv" --authorization-mode=Node,RBAC \
    --service-cluster-ip-range=10.99.0.0/24 --service-account-issuer=https://codeexec.test \
    --service-account-key-file="$dir/accounts.key" \
    --service-account-signing-key-file="$dir/accounts.key" \
    --kubelet-client-certificate="$dir/client.crt" --kubelet-client-key="$dir/client.key" \
    --kubelet-preferred-address-types=Hostname --endpoint-reconciler-type=none
  make_image || return 1
  wait_until 30 in_containerd version || return 1
  in_containerd images import "$dir/image.tar" > "$dir/files.log" 2>&1
  wait_until 60 is_ready || return 1
  start_kubelet
  start_daemon scheduler "$bin/kube-scheduler" --kubeconfig="$dir/admin.kubeconfig" \
    --leader-elect=false --secure-port=0
  start_daemon controllers "$bin/kube-controller-manager" --kubeconfig="$dir/admin.kubeconfig" \
    --leader-elect=false --secure-port="$controllers" --bind-address=127.0.0.1 \
    --node-monitor-period=1s --node-monitor-grace-period=10s \
    --service-account-private-key-file="$dir/accounts.key"
  wait_until 60 node_is_ready || return 1
  wait_until 60 has_account || return 1
  if [ -x "$bin/agent-sandbox-controller" ]; then
    kubectl_here apply --server-side -f "$bin/agent-sandbox.yaml" > "$dir/files.log" 2>&1
    kubectl_here wait --for=condition=established --timeout=30s crd --all >> "$dir/files.log" 2>&1
    start_daemon sandboxes "$bin/agent-sandbox-controller" --kubeconfig="$dir/admin.kubeconfig" \
      --extensions --leader-elect=false --enable-webhook=false --manage-webhook-certs=false \
      --metrics-bind-address=0 --health-probe-bind-address=0
  fi
  echo "$dir/admin.kubeconfig"
}

stop() {
  if [ -s "$dir/kubelet.pid" ] && [ -s "$dir/apiserver.pid" ]; then
    kubectl_here delete sandboxwarmpools --all -A --timeout=10s > "$dir/probe.log" 2>&1 || true
    kubectl_here delete pods --all -A --now --timeout=20s > "$dir/probe.log" 2>&1 || true
  fi
  for name in sandboxes controllers scheduler kubelet apiserver; do
    end_daemon $name
  done
  if [ -s "$dir/containerd.pid" ]; then
    for task in $(in_containerd tasks ls -q 2> "$dir/probe.log"); do
      in_containerd tasks kill -s KILL "$task" || true
    done > "$dir/probe.log" 2>&1
    for task in $(in_containerd containers ls -q 2> "$dir/probe.log"); do
      wait_until 5 in_containerd tasks rm -f "$task" || true
    done > "$dir/probe.log" 2>&1
  fi
  end_daemon containerd
  end_daemon etcd
  # What a killed containerd has left are its shims, mounts, networks and cgroups.
  for shim in /proc/[0-9]*; do
    ! tr '\0' ' ' 2> /dev/null < "$shim/cmdline" |
      grep -q "^[^ ]*containerd-shim.*$dir/containerd.sock" || kill "${shim#/proc/}" || true
  done
  last_mount='index($2, dir) == 1 { last = $2 } END { print last }'
  while mounted=$(awk -v dir="$dir/" "$last_mount" /proc/mounts) && [ -n "$mounted" ]; do
    umount "$mounted" || umount -l "$mounted" || break
  done
  find /sys/fs/cgroup -depth -type d \( -path '*/kubepods*' -o -path '*/k8s.io*' \) \
    -exec rmdir {} + 2> "$dir/probe.log" || true
  [ ! -s "$dir/sysctls" ] || sysctl -q -p "$dir/sysctls"
}

start() {
  if ! start_all; then
    echo "Kubernetes does not start:" >&2
    for log in "$dir"/*.log; do
      echo "$log:" && tail -n 5 "$log"
    done >&2
    stop
    exit 1
  fi
}

command=$1
case $command in
  has | build) $command && exit 0 || exit 1 ;;
esac
mkdir -p "${2:?a folder}"
dir=$(cd "$2" && pwd -P)
case $command:${3:-} in
  start: | stop:) $command ;;
  user:*) echo "$dir/$3.kubeconfig" ;;
  node:down)
    pid=$(cat "$dir/kubelet.pid")
    kill -KILL "$pid"
    wait_until 10 has_ended "$pid"
    ;;
  node:up)
    start_kubelet
    wait_until 60 node_is_ready
    ;;
  *)
    echo "kubernetes.sh: has, build, start, user, node or stop" >&2
    exit 2
    ;;
esac
