#!/usr/bin/env bash
# Runs a program for several ranks on two machines that are namespaces of this one, as mpirun would on two machines of a network:
#
#   tools/scale/two-machines.sh [-n RANKS] [--mpi openmpi|mpich] [--rate RATE] [--show] PROGRAM [ARGUMENT...]
#
# -n        number of ranks, half of them on each machine (default: 2)
# --mpi     the implementation whose mpirun starts them (default: openmpi)
# --rate    limits the link in each direction, in tc's units: 1gbit (default: no limit)
# --show    prints the list of hosts and the command line for two machines of a network
#
# Each machine has its own host name and network, which a virtual cable connects to the other machine, a /dev/shm, and half of the
# processors. They share the file system, so PROGRAM and its plug-ins are at the same path on both. Instead of ssh, mpirun starts
# processes on the other machine by a script that enters its namespaces. Needs root. No process or namespace is left: namespaces end with
# the last process, and all processes are in a PID namespace that ends with this script, even if it is killed.
set -euo pipefail
shopt -s inherit_errexit

readonly network=10.87.0 hosts=(mica-1 mica-2)

die() {
  echo "${0##*/}: $1" >&2
  exit "${2:-1}"
}

ranks=2 mpi=openmpi rate='' show=''
parse() {
  while [[ ${1:-} == -* ]]; do
    case $1 in
      -n) ranks=${2:-} ;;
      --mpi) mpi=${2:-} ;;
      --rate) rate=${2:-} ;;
      --show)
        show=1
        shift
        continue
        ;;
      -h | --help) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "$0" && exit ;;
      *) die "unknown option $1; see --help" 2 ;;
    esac
    shift 2 || die "an option is incomplete; see --help" 2
  done
  command=("$@")
  [[ ${#command[@]} -gt 0 ]] || die "expects a program; see --help" 2
  [[ $ranks =~ ^[1-9][0-9]*$ ]] && ((ranks % 2 == 0)) || die "-n '$ranks' is not an even number of ranks" 2
  [[ $mpi == openmpi || $mpi == mpich ]] || die "--mpi '$mpi' is neither openmpi nor mpich" 2
  [[ -z $rate || $rate =~ ^[0-9]+[kmg]?bit$ ]] || die "--rate '$rate' is not a rate such as 1gbit" 2
}

check() {
  [[ $EUID -eq 0 ]] || die "needs root, to create network namespaces; start it with sudo"
  local tool
  for tool in ip tc; do
    type -P "$tool" > /dev/null || die "needs $tool; install the Debian package iproute2"
  done
  local package=openmpi-bin
  [[ $mpi == openmpi ]] || package=mpich
  type -P "mpirun.$mpi" > /dev/null || die "needs mpirun.$mpi; install the Debian package $package"
}

# The processors that this script may use, divided among the machines; with a single one, both use it.
processors_of() {
  local machine=$1 allowed first count
  mapfile -t allowed < <(awk '/^Cpus_allowed_list/ { n = split($2, ranges, ","); for (i = 1; i <= n; i++) {
    split(ranges[i], ends, "-"); last = ends[2] == "" ? ends[1] : ends[2]; for (p = ends[1]; p <= last; p++) print p } }' /proc/self/status)
  count=$((${#allowed[@]} / 2))
  ((count > 0)) || { count=1 && machine=0; }
  first=$((machine * count))
  (IFS=, && echo "${allowed[*]:first:count}")
}

# A process that keeps the namespaces of a machine. Its number is written to FOLDER/HOST when the machine is ready.
boot() {
  local folder=$1 machine=$2 host=${hosts[$2]}
  unshare --net --uts --ipc --mount -- bash -euc '
    folder=$1 host=$2
    hostname "$host"
    mount -t tmpfs tmpfs /dev/shm
    mount -t sysfs sysfs /sys  # MPICH looks for networks there
    mount --bind "$folder/hosts" /etc/hosts
    ip link set lo up
    echo $$ > "$folder/$host.part" && mv "$folder/$host.part" "$folder/$host"
    exec sleep infinity' "$0" "$folder" "$host" < /dev/null &
  until [[ -e $folder/$host ]]; do
    kill -0 $! 2> /dev/null || die "cannot create the namespaces of a machine"
    sleep 0.01
  done
  processors_of "$machine" > "$folder/$host.processors"
}

# ip and tc of a machine.
on() {
  local process
  process=$(< "$1/$2") && shift 2
  nsenter --target "$process" --net -- "$@"
}

# A token bucket of 50 us, but of two packets at least: what is sent in less time is not delayed, so the bucket must be small compared with
# the messages, and large enough for the resolution of timers.
limit() {
  local bits=${rate%bit} burst
  case $bits in
    *k) bits=${bits%k}000 ;;
    *m) bits=${bits%m}000000 ;;
    *g) bits=${bits%g}000000000 ;;
  esac
  burst=$((bits / 8 / 20000))
  on "$1" "$2" tc qdisc add dev cable root tbf rate "$rate" burst $((burst > 3028 ? burst : 3028)) latency 50ms
}

connect() {
  local folder=$1 machine
  on "$folder" "${hosts[0]}" ip link add cable type veth peer name cable netns "$(< "$folder/${hosts[1]}")"
  for machine in 0 1; do
    on "$folder" "${hosts[machine]}" ip address add "$network.$((machine + 1))/24" dev cable
    on "$folder" "${hosts[machine]}" ip link set cable up
    [[ -z $rate ]] || limit "$folder" "${hosts[machine]}"
  done
  # MPICH does not use a network whose cable is not known to be connected, which takes up to a second.
  for machine in 0 1; do
    until [[ $(on "$folder" "${hosts[machine]}" ip -oneline link show dev cable) == *" state UP "* ]]; do
      sleep 0.01
    done
  done
}

# What mpirun starts instead of ssh: HOST COMMAND...
write_agent() {
  cat > "$1/agent" << EOF
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\$1 && shift
exec nsenter --target "\$(< "$1/\$host")" --net --uts --ipc --mount --wdns="\$PWD" -- taskset --cpu-list "\$(< "$1/\$host.processors")" \\
  env TMPDIR="$1" bash -c "\$*"
EOF
  chmod +x "$1/agent"
}

# What starts the same on two machines that are reached with ssh. The one that is executed needs the agent, which exists only meanwhile.
show_command() {
  local each=$1 start machine separator=:
  if [[ $mpi == openmpi ]]; then
    separator=' slots=' start=(mpirun.openmpi --hostfile hosts -n "$ranks" --bind-to none)
  else
    start=(mpirun.mpich -f hosts -n "$ranks")
  fi
  echo "${hosts[0]}$ cat hosts"
  for machine in "${hosts[@]}"; do
    echo "$machine$separator$each"
  done
  echo "${hosts[0]}$ ${start[*]}$(printf ' %q' "${command[@]}")"
}

# The first process of the PID namespace.
inside() {
  local folder=$1 each=$((ranks / 2)) machine
  for machine in 0 1; do
    echo "$network.$((machine + 1)) ${hosts[machine]}"
  done > "$folder/hosts"
  echo "127.0.0.1 localhost" >> "$folder/hosts"
  for machine in 0 1; do
    boot "$folder" "$machine"
  done
  connect "$folder"
  write_agent "$folder"
  local start
  if [[ $mpi == openmpi ]]; then
    start=(mpirun.openmpi --allow-run-as-root --bind-to none --mca plm_rsh_agent "$folder/agent"
           --host "${hosts[0]}:$each,${hosts[1]}:$each" -n "$ranks")
  else
    start=(mpirun.mpich -launcher ssh -launcher-exec "$folder/agent" -hosts "${hosts[0]}:$each,${hosts[1]}:$each" -n "$ranks")
  fi
  [[ -z $show ]] || show_command "$each" >&2
  "$folder/agent" "${hosts[0]}" "$(printf '%q ' exec "${start[@]}" "${command[@]}")" <&0 &
  # MPICH's mpirun may wait for processes that do not end.
  finish $! "kill -s TERM $!; { sleep 5; kill -s KILL $!; } &"
}

# Waits for a process and exits as it does, or with 143 after a signal, which executes ON_SIGNAL.
finish() {
  local process=$1 on_signal=$2 status interrupted=''
  # shellcheck disable=SC2064 # expanded now, not when the signal arrives
  trap "interrupted=143; $on_signal" TERM INT HUP
  while :; do
    status=0
    wait "$process" || status=$?
    kill -0 "$process" 2> /dev/null || exit "${interrupted:-$status}"
  done
}

if [[ ${1:-} == --inside ]]; then
  folder=$2
  shift 2
  parse "$@"
  inside "$folder"
fi
parse "$@"
check
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc -- "$0" --inside "$folder" "$@" <&0 &
finish $! "kill -s TERM \$(< /proc/$!/task/$!/children)"
