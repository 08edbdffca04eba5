#!/bin/bash
# Makes the job's folder in memory, /mnt/memory/job_ID of the jail, empty and open to its user.
memory=$CHECKS_ROOT${CHECKS_JAIL-/mnt/jail}/mnt/memory
mountpoint -q "$memory" || { echo "skipped: $memory is no mount" >&3; exit 0; }
folder=$memory/job_${SLURM_JOB_ID:?}
rm -rf --one-file-system -- "$folder"
umask 0
mkdir -m 0777 -- "$folder" || echo "skipped: $folder cannot be made" >&3
exit 0
