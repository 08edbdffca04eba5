#!/bin/bash
# Writes the job's id for each of its GPUs, where dcgm-exporter reads it.
folder=$CHECKS_ROOT/var/run/nebius/slurm
[ -n "$SLURM_JOB_GPUS" ] || { echo "skipped: the job has no GPU" >&3; exit 0; }
mkdir -p "$folder" || { echo "skipped: $folder cannot be made" >&3; exit 0; }
for gpu in ${SLURM_JOB_GPUS//,/ }; do
    [[ $gpu =~ ^[0-9]+$ ]] || continue
    echo "${SLURM_JOB_ID:?}" >"$folder/.$gpu" && mv -f "$folder/.$gpu" "$folder/$gpu"
done
exit 0
