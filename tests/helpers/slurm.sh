#!/bin/sh
# A Slurm of its own, of one node with 16 processors that need not be there:
#
#   tests/helpers/slurm.sh start DIR    in a new folder; prints the path of its slurm.conf
#   tests/helpers/slurm.sh stop DIR
#
# $SLURM_CONF=DIR/slurm.conf leads to it. Needs root and the packages slurm-wlm and munge. It
# listens on two ports of this machine that are free now.
set -eu
[ $# = 2 ] || {
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
}
PATH=$PATH:/usr/sbin:/sbin
. "$(dirname "$0")/daemons.sh"
mkdir -p "$2"
dir=$(cd "$2" && pwd -P)
SLURM_CONF=$dir/slurm.conf
export SLURM_CONF

free_ports() {
  python3 -c 'import socket
all = [socket.socket() for _ in range(2)]
for one in all: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in all])'
}

is_idle() { [ "$(sinfo -h -o %T)" = idle ]; }

start() {
  host=$(hostname -s)
  # shellcheck disable=SC2046
  set -- $(free_ports)
  mkdir -p "$dir/munge" "$dir/state" "$dir/spool"
  chmod 755 "$dir"
  chmod 711 "$dir/munge"
  head -c 1024 /dev/urandom > "$dir/munge/key"
  chmod 600 "$dir/munge/key"
  cat > "$SLURM_CONF" << END
ClusterName=codeexec
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmctldPort=$1
SlurmdPort=$2
SlurmctldPidFile=$dir/slurmctld.own
SlurmdPidFile=$dir/slurmd.own
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
InactiveLimit=0
KillWait=2
OverTimeLimit=0
MinJobAge=300
DefMemPerCPU=100
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 RealMemory=16000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
  cat > "$dir/cgroup.conf" << END
CgroupAutomount=no
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
END
  start_daemon munged munged -F -f --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
    --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
    --num-threads=2
  wait_until 10 test -S "$dir/munge/socket"
  start_daemon slurmctld slurmctld -D -f "$SLURM_CONF"
  start_daemon slurmd slurmd -D -f "$SLURM_CONF"
  if ! wait_until 30 is_idle; then
    echo "Slurm does not start:" >&2
    tail -n 5 "$dir"/*.log >&2
    stop
    exit 1
  fi
  echo "$SLURM_CONF"
}

stop() {
  [ ! -s "$dir/slurmctld.pid" ] || timeout 10 scancel -u root > "$dir/probe.log" 2>&1 || true
  for name in slurmd slurmctld munged; do
    end_daemon $name
  done
  find /sys/fs/cgroup -depth -type d -path "*/slurm_$(hostname -s)*" -exec rmdir {} + \
    2> "$dir/probe.log" || true
}

case $1 in
  start) start ;;
  stop) stop ;;
  *)
    echo "slurm.sh: start or stop" >&2
    exit 2
    ;;
esac
