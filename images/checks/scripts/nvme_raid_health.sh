#!/bin/bash
# Fails while an array of disks lacks one of them.
file=$CHECKS_ROOT/proc/mdstat
[ -r "$file" ] || { echo "skipped: $file is absent" >&3; exit 0; }
grep -qE '^md[^ ]* : ' "$file" || { echo "skipped: the node has no array of disks" >&3; exit 0; }
cat "$file"
found=$(awk '/^md[^ ]* : / { name = $1; if ($3 == "inactive") print name " is inactive" }
    match($0, /\[[U_]*_[U_]*\]/) { print name " " substr($0, RSTART, RLENGTH) }' "$file")
[ -n "$found" ] || exit 0
paste -sd ';' <<<"$found" >&3
exit 1
