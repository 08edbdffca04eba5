#!/bin/bash
# Deletes all files of the node's scratch volume, if it is a mount of its own.
folder=$CHECKS_ROOT${CHECKS_JAIL-/mnt/jail}/scratch
mountpoint -q "$folder" || { echo "skipped: $folder is no mount" >&3; exit 0; }
find -P "$folder" -xdev -mindepth 1 -delete || echo "skipped: files of $folder are left" >&3
exit 0
