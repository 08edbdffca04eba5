#!/bin/bash
# What does Slurm itself report? Daemons, nodes, partitions, queue and configuration.
. "$(dirname "$0")/common.sh"

title "scontrol ping"
answer=$(slurm scontrol ping || true)
echo "$answer"
if grep -q "is UP" <<<"$answer"; then good "slurmctld answers"; else bad "slurmctld does not answer"; fi

title "Nodes and partitions: sinfo"
slurm sinfo
slurm sinfo -N -l
workers=$(field .spec.slurmNodes.worker.size)
states=$(slurm sinfo -h -N -o '%N %t' | sort -u)
registered=$(grep -c . <<<"$states" || true)
if [ "$registered" = "${workers:-0}" ]; then
    good "$registered nodes, as spec.slurmNodes.worker.size"
else
    bad "$registered nodes; spec.slurmNodes.worker.size is ${workers:-0}"
fi
while read -r node state; do
    case $state in
    "" | idle | mix | alloc | comp) ;;
    *) bad "$node is $state" ;;
    esac
done <<<"$states"

title "Daemons"
daemon() {
    if kube exec "$1" -c "$2" -- pgrep -x "$2" >/dev/null; then good "$2 in $1"; else bad "no $2 in $1"; fi
}
daemon controller-0 slurmctld
for node in $(cut -d' ' -f1 <<<"$states"); do daemon "$node" slurmd; done

title "Queue: squeue"
slurm squeue

title "Configuration in force"
slurm scontrol show config | grep -E '^(ClusterName|SlurmctldHost|SLURM_VERSION|SelectType|AuthType|SlurmUser|PlugStackConfig) '
same=$(jail scontrol show config | grep -E '^ClusterName ')
if [ "$(slurm scontrol show config | grep -E '^ClusterName ')" = "$same" ]; then
    good "the jail's clients have the same cluster"
else
    bad "the jail's clients have another cluster: $same"
fi
finish
