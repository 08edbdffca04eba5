#!/bin/bash
# Deletes the files of map_job_dcgm.sh that have this job.
folder=$CHECKS_ROOT/var/run/nebius/slurm
[ -n "$SLURM_JOB_GPUS" ] || { echo "skipped: the job has no GPU" >&3; exit 0; }
for gpu in ${SLURM_JOB_GPUS//,/ }; do
    [[ $gpu =~ ^[0-9]+$ ]] || continue
    [ "$(cat "$folder/$gpu" 2>/dev/null)" != "${SLURM_JOB_ID:?}" ] || rm -f "$folder/$gpu"
done
exit 0
