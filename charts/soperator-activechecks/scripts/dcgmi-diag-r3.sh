#!/bin/bash
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=01:30:00
# Level 3 of the diagnostics of NVIDIA DCGM.
if ! command -v dcgmi >/dev/null; then
    echo "SKIP there is no dcgmi in the jail"
    scancel "$SLURM_JOB_ID"
    sleep 60
fi
dcgmi diag -r 3
