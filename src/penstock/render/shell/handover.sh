# Waits until no other slurmctld of the cluster has control.
#
# The first slurmctld of slurm.conf takes control when it starts. One of Slurm 26.05 that has it answers
# 29 seconds later, and writes its state only then: the first may find no job, and no job lives on. So it
# starts once the other has ended, for which the operator sees while this runs.
# Arguments: the pod of the first, slurmctld's port, and the hosts of the others.
set -u
export LC_ALL=C

[ "${POD_NAME:-}" = "$1" ] || exit 0
port=$2
shift 2
tries=${HANDOVER_TRIES:-2} # so many times in a row nobody may have control
patience=${HANDOVER_PATIENCE:-10} # so many times in a row one that is connected to may not answer
pause=${HANDOVER_PAUSE:-0.3}
limit=${HANDOVER_LIMIT:-3}

ask='exec 3<>"/dev/tcp/$0/$1" || exit 1
printf "GET /readyz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "$0" >&3
read -r line <&3 && case $line in HTTP/*" 2"[0-9][0-9]" "*) exit 0 ;; esac
exit 1'

noted= free=0 mute=0
while :; do
  active= silent=
  for host; do
    timeout "$limit" bash -c "$ask" "$host" "$port" 2>/dev/null
    case $? in
    0) active=$host ;;
    124) silent=$host ;;
    esac
  done
  if [ -n "$active" ]; then
    mute=0 free=0
    [ "$noted" = "$active" ] || printf '%s has control: waiting for its end\n' "$active"
    noted=$active
  elif [ -n "$silent" ] && [ "$mute" -lt "$patience" ]; then
    mute=$((mute + 1)) free=0
  else
    free=$((free + 1))
    [ "$free" -lt "$tries" ] || exit 0
  fi
  sleep "$pause"
done
