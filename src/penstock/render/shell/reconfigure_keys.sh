# For auth/slurm: has slurmctld read keys that changed.
#
# The entry point of slurmctld's container puts slurm.jwks into place, and then writes its digest to the file
# `keys`, with `start` behind it when slurmctld is about to start with it. Reports
#   keys DIGEST                      slurmctld runs with these keys
keys=${SLURM_KEYS:-/run/slurmctld/penstock-keys}
keys_file=$state/keys
keys_taken=$(saved "$keys_file")
keys_due=0
[ -z "$keys_taken" ] || report "keys $keys_taken"

follow_keys() { # at each tick of the main loop; not where a step of it compares files
  [ "${FUNCNAME[2]-main}" = main ] && [ -f "$keys" ] || return
  digest= how=
  { read -r digest how <"$keys"; } 2>/dev/null
  [ -n "$digest" ] && [ "$digest" != "$keys_taken" ] || return
  if [ "$how" != start ]; then
    # Files that slurmctld does not run with are tried first, by the main loop.
    [ "$wanted" = "$applied" ] && [ "$SECONDS" -ge "$keys_due" ] || return
    same "$candidate" "$candidate_seen" && same "$etc" "$etc_seen" || return
    if ! reconfigure; then
      keys_due=$((SECONDS + 2))
      return
    fi
  fi
  keys_taken=$digest
  printf '%s' "$keys_taken" >"$keys_file"
  report "keys $keys_taken"
}

# The loop, and `same` by which it compares files at each tick, are the same text in every cluster: another text
# would restart slurmctld there. So the step is put into `same` here.
eval "$(declare -f same | sed '0,/{/s//{ follow_keys;/')"

