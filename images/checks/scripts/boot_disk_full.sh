#!/bin/bash
# Fails while more than 80 % of the disk below the container's root is used: it is the node's boot disk.
disk=${BOOT_DISK:-/} most=${BOOT_DISK_PERCENT:-80}
found=$(df -P -k -- "$disk" 2>&1) || { echo "skipped: $found" >&3; exit 0; }
echo "$found"
used=$(awk 'NR == 2 { sub("%", "", $5); print $5 }' <<<"$found")
[[ $used =~ ^[0-9]+$ ]] || { echo "skipped: df has no percentage of $disk" >&3; exit 0; }
[ "$used" -gt "$most" ] || exit 0
echo "$used % of $disk is used, at most $most % may be" >&3
exit 1
