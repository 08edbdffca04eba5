#!/bin/sh
# For the DCGM exporter: the GPUs of the job that ends belong to no job any more.
if [ -n "${SLURM_JOB_GPUS:-}" ]; then
    for gpu in $(echo "$SLURM_JOB_GPUS" | tr ',' ' '); do
        rm -f '@DIR@'/"$gpu"
    done
fi
exit 0
