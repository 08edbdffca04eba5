#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=00:05:00
# Fails while a Slurm node is drained, down or has a reason. Nodes that are powered down are no fault.
bad=$(sinfo --noheader --Node --Format='NodeHost:64,StateCompact:20,Reason:160' |
    awk '{ reason = $0; sub(/^[^ ]+ +[^ ]+ +/, "", reason); sub(/ +$/, "", reason) }
         $2 ~ /^(down|drain|drng|fail|unk|boot_fail)/ || $2 ~ /\*/ || reason !~ /^(none)?$/ { print }' | sort -u)
if [ -n "$bad" ]; then
    printf 'unhealthy nodes:\n%s\n' "$bad"
    exit 1
fi
echo "all nodes are healthy"
