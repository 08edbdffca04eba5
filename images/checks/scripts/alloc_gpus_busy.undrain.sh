#!/bin/bash
# Passes once no process is on any GPU of the node.
unset SLURM_JOB_GPUS
exec "${BASH_SOURCE[0]%/*}/alloc_gpus_busy.drain.sh"
