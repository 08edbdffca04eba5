# For an /etc/slurm that is a plain folder on a shared volume: its files are replaced one by one, and no kubelet
# shows them all at once.
#
# Whoever writes them writes last the manifest, which is what `sha256sum -- *` prints for them. The folder is
# complete while each file has the sum that the manifest has for it. So the manifest's text is the generation, and
# HASH is the sum of that text. Files beside these are of users, and not in HASH. While the folder is incomplete,
# slurmctld is asked nothing: it would read some new and some old files.
manifest=.penstock-files
looked=

eval "mounted_$(declare -f content)"
eval "mounted_$(declare -f same)"
eval "complete_$(declare -f admitted)"
eval "complete_$(declare -f reconfigure)"

is_plain() { # whether no kubelet keeps this folder
  [ ! -L "$1/..data" ]
}

listed() { # puts the text of a folder's manifest into sums; false when it has none. Starts no process.
  sums=
  [ -f "$1/$manifest" ] || return
  { IFS= read -r -d '' sums <"$1/$manifest"; } 2>/dev/null
  [ -n "$sums" ]
}

holds() { # whether the files of a folder have the sums in sums
  (cd "$1" && printf '%s' "$sums" | timeout 20 sha256sum --check --strict --status) 2>/dev/null
}

readlink() { # the generation of a folder
  if [ "$1" = "${1%/..data}/..data" ] && is_plain "${1%/..data}"; then
    listed "${1%/..data}" && printf '%s' "$sums"
    return
  fi
  command readlink "$@"
}

content() {
  is_plain "$1" || {
    mounted_content "$1"
    return
  }
  listed "$1" || return
  case "${sums: -1}$sums" in $'\n'*'  slurm.conf'$'\n'*) ;; *) return 1 ;; esac
  holds "$1" || return
  printf '%s' "$sums" | sha256sum | cut -d ' ' -f 1
}

same() {
  is_plain "$1" || {
    mounted_same "$@"
    return
  }
  if [ -z "$2" ] && [ "${FUNCNAME[1]-main}" = main ]; then
    # It was incomplete: all files are read again, once a second.
    [ "$looked" != "$SECONDS" ] || return 0
    looked=$SECONDS
    return 1
  fi
  listed "$1" && [ "${sums%$'\n'}" = "$2" ] || return
  # The loop only looks for another manifest. Who acts on the files must know that they are those.
  [ "${FUNCNAME[1]-main}" = main ] || holds "$1"
}

check_complete() { # whether all files are in place: 0 they are, 2 not, 3 other ones are; why not is in answer
  same "$etc" "$etc_seen" && return
  content "$etc" >/dev/null && return 3
  answer="$etc is incomplete: its files are not those that its $manifest lists"
  return 2
}

admitted() {
  check_complete && complete_admitted
}

reconfigure() {
  check_complete && complete_reconfigure || return
  same "$etc" "$etc_seen" || return 3
}

