#!/bin/bash
# Deletes shared memory that a job left behind. The job had the whole node.
folder=$CHECKS_ROOT/dev/shm
[ -d "$folder" ] || { echo "skipped: $folder is absent" >&3; exit 0; }
find -P "$folder" -xdev -mindepth 1 -delete || echo "skipped: files of $folder are left" >&3
exit 0
