#!/bin/bash
# Deletes folders in memory that are older than a minute and whose job has no process here.
memory=$CHECKS_ROOT${CHECKS_JAIL-/mnt/jail}/mnt/memory
mountpoint -q "$memory" || { echo "skipped: $memory is no mount" >&3; exit 0; }
# Each job has a slurmstepd on each of its nodes for as long as it runs (PrologFlags=contain).
jobs=$(cat "$CHECKS_ROOT"/proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' |
    sed -nE 's/^slurmstepd: \[([0-9]+)\..*/\1/p')
find -P "$memory" -mindepth 1 -maxdepth 1 -type d -name 'job_*' -mmin +1 | while read -r folder; do
    grep -qx "${folder##*/job_}" <<<"$jobs" && continue
    echo "$folder has no job"
    rm -rf --one-file-system -- "$folder"
done
exit 0
