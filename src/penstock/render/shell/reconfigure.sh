# Makes slurmctld take over the files in /etc/slurm whenever they change.
#
# Runs beside slurmctld in a container of its own. Once a second it looks whether the kubelet put
# another generation of the volume there, which costs one readlink; only then are the files hashed.
# A refused configuration leaves slurmctld running with the one it has: the reason goes to stderr
# and, once for each content, to the termination message, so that the pod's status shows it.
set -u

etc=${SLURM_ETC:-/etc/slurm}
state=${RECONFIGURE_STATE:-/run/reconfigure}
message=${TERMINATION_LOG:-/dev/termination-log}
tick=${RECONFIGURE_TICK:-1}

# A container that starts again must know what slurmctld already has: the state outlives it.
applied_file=$state/applied
refused_file=$state/refused

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >&2; }

content() { # one hash over the names and the content of all files
  (cd "$etc" && sha256sum -- *) 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

why() { # what slurmctld itself says of the files, from a start of its own that ends at once
  # Needed when only the new slurmctld process knew: scontrol then says no more than that it failed.
  # Nothing of the real one is touched: other port and state, no auth socket, no accounting. One
  # that does start is ended within a second: then the files are not the reason.
  trial=$state/trial
  rm -rf "$trial"
  mkdir -p "$trial/etc" "$trial/state"
  cp -L "$etc"/* "$trial/etc/" 2>/dev/null
  own='StateSaveLocation|Slurmctld(PidFile|Port|LogFile)|SlurmSchedLogFile|AuthInfo'
  sed -i -E "/^[[:space:]]*($own|AccountingStorage[A-Za-z]*)[[:space:]]*=/Id" "$trial/etc/slurm.conf"
  printf '%s\n' "StateSaveLocation=$trial/state" "SlurmctldPidFile=$trial/pid" SlurmctldPort=16817 \
    AuthInfo=disable_sack >>"$trial/etc/slurm.conf"
  timeout -s KILL 1 slurmctld -D -c -f "$trial/etc/slurm.conf" >"$trial/said" 2>&1
  if grep -q 'fatal: ' "$trial/said"; then
    sed -E 's/^\[[^]]*\] //; s/^slurmctld: //' "$trial/said" | tail -n 3
  fi
  rm -rf "$trial"
}

saved() { [ -f "$1" ] && cat "$1"; }

trap 'exit 0' TERM INT

seen=$(readlink "$etc/..data")
wanted=$(content)
applied=$(saved "$applied_file")
if [ -z "$applied" ]; then # first start in this pod: slurmctld is about to read these very files
  applied=$wanted
  printf '%s' "$applied" >"$applied_file"
fi
[ "$wanted" = "$applied" ] || say "/etc/slurm changed while nobody looked"
pause=1
due=$SECONDS
if [ "$wanted" = "$(saved "$refused_file")" ]; then # ended because of this content just now
  pause=2
  due=$((SECONDS + pause))
fi

while :; do
  sleep "$tick" &
  wait $!

  generation=$(readlink "$etc/..data")
  if [ -z "$generation" ] || [ "$generation" != "$seen" ]; then
    seen=$generation
    now=$(content)
    if [ "$now" != "$wanted" ]; then
      wanted=$now
      pause=1
      due=$SECONDS
    fi
  fi
  [ "$wanted" != "$applied" ] || continue
  [ "$SECONDS" -ge "$due" ] || continue

  if answer=$(timeout 60 scontrol reconfigure 2>&1); then
    applied=$wanted
    printf '%s' "$applied" >"$applied_file"
    rm -f "$refused_file"
    say "slurmctld runs with the new configuration $applied"
    continue
  fi

  answer=${answer:-"scontrol reconfigure gave no answer in 60 s"}
  pause=$((pause * 2 < 60 ? pause * 2 : 60))
  due=$((SECONDS + pause))
  case $answer in
  *"Unable to contact"* | *[Cc]"onnect"* | *"timed out"* | *"no answer"*)
    say "slurmctld could not be asked, next try in $pause s: $answer"
    continue
    ;;
  esac
  case $answer in
  *"Unspecified error"*)
    reason=$(why)
    answer=${reason:-"$answer (the reason is in the log of container logfile)"}
    ;;
  esac
  say "slurmctld refused the configuration $wanted, next try in $pause s: $answer"
  if [ "$wanted" != "$(saved "$refused_file")" ]; then
    printf '%s' "$wanted" >"$refused_file"
    printf 'slurmctld refused slurm.conf %s and keeps the one it has: %s' \
      "$(sha256sum "$etc/slurm.conf" | cut -d ' ' -f 1)" "$answer" >"$message"
    exit 1
  fi
done
