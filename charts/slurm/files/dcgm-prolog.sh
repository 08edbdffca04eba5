#!/bin/sh
# For the DCGM exporter: a file for each GPU of the job, named by its index, with the job's number.
# Metrics are no reason to drain a node, so this never fails.
if [ -n "${SLURM_JOB_GPUS:-}" ] && mkdir -p '@DIR@'; then
    for gpu in $(echo "$SLURM_JOB_GPUS" | tr ',' ' '); do
        echo "$SLURM_JOB_ID" >'@DIR@'/"$gpu"
    done
fi
exit 0
