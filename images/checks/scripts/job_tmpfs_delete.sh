#!/bin/bash
# Deletes the job's folder in memory.
memory=$CHECKS_ROOT${CHECKS_JAIL-/mnt/jail}/mnt/memory
mountpoint -q "$memory" || { echo "skipped: $memory is no mount" >&3; exit 0; }
rm -rf --one-file-system -- "$memory/job_${SLURM_JOB_ID:?}" ||
    echo "skipped: $memory/job_$SLURM_JOB_ID cannot be deleted" >&3
exit 0
