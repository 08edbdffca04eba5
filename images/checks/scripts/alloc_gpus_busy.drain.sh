#!/bin/bash
# Fails while a process is on GPUs that nothing may use: those of the job that begins, or all of them.
command -v nvidia-smi >/dev/null || { echo "skipped: nvidia-smi is absent" >&3; exit 0; }
[ -z "$SLURM_JOB_GPUS" ] || only=(-i "$SLURM_JOB_GPUS")
query=(--query-compute-apps=pid,process_name,gpu_uuid --format=csv,noheader)
if ! found=$(nvidia-smi "${only[@]}" "${query[@]}" 2>&1); then
    echo "skipped: nvidia-smi: ${found%%$'\n'*}" >&3
    exit 0
fi
# A process that ended during the query has no name.
found=$(grep -E '^[0-9]+, .*, [^ ]+$' <<<"$found" | grep -v ', \[Not Found\], ')
[ -n "$found" ] || exit 0
echo "$found"
echo "processes on GPUs: $(sed -E 's/^([0-9]+), (.*), ([^ ]+)$/\2 (\1) on \3/' <<<"$found" | paste -sd ';')" >&3
exit 1
