# Deletes files below SNCCLPRECON_DUMP_DIR of the jail that nobody changed for MAX_AGE_MINUTES.
set -eu
folder=/mnt/jail$SNCCLPRECON_DUMP_DIR
[ -d "$folder" ] || { echo "there is no $folder"; exit 0; }
find "$folder" -xdev -mindepth 1 -type f -mmin "+${MAX_AGE_MINUTES:-60}" -print -delete
find "$folder" -xdev -mindepth 1 -type d -empty -mmin "+${MAX_AGE_MINUTES:-60}" -delete
