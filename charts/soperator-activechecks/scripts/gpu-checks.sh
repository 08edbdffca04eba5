#!/bin/bash
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=00:50:00
# Fails for what only a repair of the node cures: a missing GPU, errors in its memory, a slow link.
# A missing program is no fault of the node: the job cancels itself, which drains nothing.
failed=0
fail() { echo "FAIL $*"; failed=1; }

if ! command -v nvidia-smi >/dev/null; then
    echo "SKIP there is no nvidia-smi in the jail"
    scancel "$SLURM_JOB_ID"
    sleep 60
fi

wanted=${SLURM_GPUS_ON_NODE:-0}
if ! found=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>&1); then
    fail "nvidia-smi: $found"
elif [ "$(wc -l <<<"$found")" -lt "$wanted" ]; then
    fail "$(wc -l <<<"$found") of $wanted GPUs answer"
fi

# FIELD of nvidia-smi, and the largest value that is no fault. A card without the field has none.
while read -r field most; do
    while IFS=', ' read -r gpu value; do
        [[ $value =~ ^[0-9]+$ ]] && [ "$value" -gt "$most" ] && fail "GPU $gpu: $field is $value"
    done < <(nvidia-smi --query-gpu="index,$field" --format=csv,noheader 2>/dev/null)
done <<'FIELDS'
ecc.errors.uncorrected.volatile.total 0
retired_pages.double_bit.count 60
FIELDS
while IFS=', ' read -r gpu pending failure; do
    [[ $pending =~ ^(Yes|1)$ ]] && fail "GPU $gpu: rows wait to be remapped: reset it"
    [[ $failure =~ ^(Yes|1)$ ]] && fail "GPU $gpu: rows cannot be remapped: replace it"
done < <(nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending,remapped_rows.failure --format=csv,noheader 2>/dev/null)

# Bandwidth between the GPUs of the node, where nccl-tests are installed and a least one is given.
if [ -n "${NCCL_LEAST_GBPS:-}" ] && command -v all_reduce_perf >/dev/null; then
    if out=$(all_reduce_perf -b 512M -e 8G -f 2 -g "$wanted" 2>&1); then
        got=$(awk '/Avg bus bandwidth/ { print $NF }' <<<"$out")
        if ! awk -v got="$got" -v least="$NCCL_LEAST_GBPS" 'BEGIN { exit !(got + 0 >= least + 0) }'; then
            fail "all_reduce_perf: $got GB/s, at least $NCCL_LEAST_GBPS expected"
        fi
    else
        fail "all_reduce_perf: $(tail -n 3 <<<"$out")"
    fi
fi
[ $failed = 0 ] && echo "PASS $wanted GPUs"
exit $failed
