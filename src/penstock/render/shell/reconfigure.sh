# Tries new files beside slurmctld, and makes slurmctld take over those in /etc/slurm.
#
# Runs beside slurmctld in a container of its own. What is to become /etc/slurm comes to the folder of
# candidates first. It is tried by a start of slurmctld that touches nothing of the real one. Only
# then does the operator put it into /etc/slurm, and slurmctld is told to reconfigure.
#
# Each line on stdout that begins with "penstock:" is read by the operator; HASH is one over the names
# and the content of all files but slurm.key and jwt.key:
#   slurm VERSION                    the version of Slurm in this image
#   tried HASH ok                    a slurmctld started with the candidates
#   tried HASH refused: WORDS        it did not; what it said
#   untried HASH: WORDS              a trial start told nothing of them, for this reason; it is made again
#   effective HASH                   the real one runs with what is in /etc/slurm
#   pending HASH                     /etc/slurm has what takes effect by a restart, for which the operator sees
#   refused HASH: WORDS              it does not take that, and keeps what it has
#   waits HASH: WORDS                it could not be asked so far
#   reconfigured VALUE ok            once for each value of the pod's annotation that asks for it
#   reconfigured VALUE refused: WORDS
# WORDS are a daemon's, which repeats names that users gave. So all that is printed goes through `plain`: one
# line, short enough for the container runtime to keep it in one piece, which no character in it ends.
set -u
umask 077
export LC_ALL=C

etc=${SLURM_ETC:-/etc/slurm}
candidate=${SLURM_CANDIDATE:-/mnt/candidate}
spool=${SLURM_STATE:-}
state=${RECONFIGURE_STATE:-/run/reconfigure}
tick=${RECONFIGURE_TICK:-0.05}
usual=${RECONFIGURE_TRIAL:-15}
longest=$usual

# A container that starts again must know what slurmctld already has: the state outlives it.
applied_file=$state/applied
tried_file=$state/tried
asked_file=$state/asked

plain() { # line breaks become " / "; control characters, and Unicode's separators and marks of direction, "?"
  tr '\000-\011\013-\037\177' '?' |
    sed -E ':all; $!{N; b all}; s/\n/ \/ /g
s/\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]/?/g' | cut -b 1-2000
}

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$(printf '%s' "$*" | plain)" >&2; }

report() { printf 'penstock: %s\n' "$(printf '%s' "$*" | plain)"; }

saved() { [ -f "$1" ] && cat "$1"; }

line() { sed ':all; N; $!b all; s/\n/ \/ /g'; }

content() { # one hash over the names and the content of a folder's files but single keys
  # Nothing, and false, when the kubelet has just taken them away.
  sums=$(
    cd -P "$1/..data" 2>/dev/null || cd "$1" || exit 1
    [ -f slurm.conf ] || exit 1
    for file in *; do
      case $file in slurm.key | jwt.key) ;; *) sha256sum -- "$file" || exit 1 ;; esac
    done
  ) 2>/dev/null || return 1
  printf '%s\n' "$sums" | sha256sum | cut -d ' ' -f 1
}

parts_of() { # paths of a folder's slurm.conf and of the files beside it that it includes, from there
  found=slurm.conf left=slurm.conf
  while [ -n "$left" ]; do
    more=
    for file in $left; do
      name='(/etc/slurm/|\./)?([A-Za-z0-9._-]+)'
      for name in $(sed -nE "s,^[[:space:]]*include[[:space:]]+$name[[:space:]]*(#.*)?\$,\2,Ip" "$1/$file"); do
        case " $found " in *" $name "*) continue ;; esac
        [ -f "$1/$name" ] || continue
        found="$found $name" more="$more $name"
      done
    done
    left=$more
  done
  for file in $found; do
    for name in $found; do
      quoted=$(printf '%s' "$name" | sed 's/[.]/[.]/g')
      sed -i -E "s,^([[:space:]]*include[[:space:]]+)/etc/slurm/($quoted)([[:space:]#]|\$),\1$1/\2\3,I" "$1/$file"
    done
    printf '%s ' "$1/$file"
  done
}

same() { # whether a volume still shows the generation that was seen last
  [ -n "$2" ] && [ "$1/..data" -ef "$1/$2" ]
}

attempt() { # starts a slurmctld with this generation of a folder's files, and waits so many seconds:
  # 0 it runs, 1 it refuses, 2 nobody knows, 3 the kubelet has put another one in place.
  # Nothing of the real one is touched: other port, other state, no auth socket, no accounting, and a
  # key of its own, so that no node listens to it. Nodes that registered are known from the state.
  words=
  trial=$state/trial
  rm -rf "$trial"
  mkdir -p "$trial/etc" "$trial/state"
  cp -L "$1"/* "$trial/etc/" 2>/dev/null
  if ! same "$1" "$2"; then
    rm -rf "$trial"
    return 3
  fi
  chmod -R u+rw "$trial/etc"
  parts=$(parts_of "$trial/etc")
  fresh=-c
  if [ -n "$spool" ] && cp "$spool/node_state" "$spool/clustername" "$trial/state/" 2>/dev/null; then
    fresh=
  fi
  rm -f "$trial/etc/slurm.key" "$trial/etc/slurm.jwks"
  head -c 64 /dev/urandom >"$trial/etc/slurm.key"
  own='StateSaveLocation|Slurmctld(PidFile|Port|LogFile|PrimaryO[nf]+Prog)|SlurmSchedLogFile|AuthInfo'
  own="$own|(Suspend|Resume|ResumeFail|Reboot)Program|AccountingStorage[A-Za-z]*"
  own="$own|PriorityWeightFairshare" # which is fatal without accounting
  auth=AuthInfo=disable_sack
  # shellcheck disable=SC2086
  if grep -qiE '^[[:space:]]*AuthType[[:space:]]*=[[:space:]]*auth/munge' $parts; then
    # Nodes believe whoever munged knows, and a trial is not to be believed.
    own="$own|AuthType|CredType"
    auth=$(printf '%s\n' AuthType=auth/slurm CredType=cred/slurm "$auth")
  fi
  # shellcheck disable=SC2086
  sed -i -E "/^[[:space:]]*($own)[[:space:]]*=/Id
/^[[:space:]]*SlurmctldParameters[[:space:]]*=/I{s/,reconfig_on_restart//I;s/=reconfig_on_restart,/=/I}" \
    $parts
  host=$(hostname)
  # shellcheck disable=SC2086
  if grep -qiE "^[[:space:]]*SlurmctldHost=$host(\(|[[:space:]]|\$)" $parts; then
    sed -i -E "/^[[:space:]]*SlurmctldHost=$host(\(|[[:space:]]|\$)/I!{/^[[:space:]]*SlurmctldHost=/Id}" $parts
  fi
  printf '\n%s\n' "StateSaveLocation=$trial/state" "SlurmctldPidFile=$trial/pid" \
    SlurmctldPort=16817 "$auth" >>"$trial/etc/slurm.conf"

  : >"$trial/said"
  # shellcheck disable=SC2086
  slurmctld -D $fresh -f "$trial/etc/slurm.conf" >"$trial/said" 2>&1 &
  trying=$!
  began=$SECONDS
  verdict=1
  while kill -0 "$trying" 2>/dev/null; do
    if grep -qE 'Running as primary controller|running in background mode' "$trial/said"; then
      verdict=0
      break
    fi
    if [ $((SECONDS - began)) -ge "$3" ]; then
      verdict=2
      break
    fi
    if [ $((SECONDS - began)) -ge 2 ] && ! same "$1" "$2"; then
      verdict=3
      break
    fi
    sleep 0.03
  done
  kill -KILL "$trying" 2>/dev/null
  wait "$trying" 2>/dev/null
  status=$?
  trying=
  # Keys that users and the operator set are remarked upon after the line that is at fault.
  words=$(sed -E '/specified more than once/d; s/^\[[^]]*\] //; s/^slurmctld: //' "$trial/said" | tail -n 3 | line)
  if [ "$verdict" = 1 ] && ! grep -q 'fatal: ' "$trial/said"; then
    words="$words (ended with status $status)"
    # Neither its words nor its end say that it is the files: not a crash, or no memory left (137).
    { [ "$status" -gt 128 ] && [ "$status" != 137 ]; } || verdict=2
  elif [ "$verdict" = 2 ]; then
    words="slurmctld had not started after $3 s: $words"
  fi
  # What slurmctld has written is not read by an older one: that says nothing of the files.
  if grep -qE 'incompatible version|checkpoint file, start with|failed to unpack' "$trial/said"; then
    verdict=2
  fi
  rm -rf "$trial"
  return "$verdict"
}

try() { # tries the candidates and reports it
  told_nothing=
  if [ "$proposed" = "$applied" ]; then
    code=0
  elif ! command -v slurmctld >/dev/null; then
    code=2
    words="the image of this container has no slurmctld to try them with"
  else
    attempt "$candidate" "$candidate_seen" "$longest"
    code=$?
  fi
  case $code in
  0) verdict=ok ;;
  1) verdict="refused: $words" ;;
  3) # what was read is of two generations
    candidate_seen= proposed=
    return
    ;;
  esac
  if [ "$code" = 2 ]; then
    # No verdict, so it is made again, with more time: a slow machine gets there.
    told_nothing=$proposed tried=
    rm -f "$tried_file"
    longest=$((longest * 2 < 300 ? longest * 2 : 300))
    report "untried $proposed: $words"
  else
    longest=$usual
    tried="$proposed $verdict"
    printf '%s' "$tried" >"$tried_file"
    report "tried $tried"
  fi
  patience=$((patience * 2 < 300 ? patience * 2 : 300))
  again=$((SECONDS + patience))
}

reconfigure() { # asks slurmctld: 0 done, 1 refused, 2 it could not be asked, 3 it read other files
  # than those that were seen; what it said is in answer
  if answer=$(timeout 60 scontrol reconfigure 2>&1); then
    return 0
  fi
  answer=$(printf '%s' "${answer:-scontrol reconfigure gave no answer in 60 s}" | line)
  case $answer in
  *"Unable to contact"* | *[Cc]"onnect"* | *"timed out"* | *"no answer"*) return 2 ;;
  *"Unspecified error"*)
    # Only the new slurmctld process knew why: one of our own says it again.
    if command -v slurmctld >/dev/null; then
      attempt "$etc" "$etc_seen" "$usual"
      [ $? = 1 ] && answer=$words
    fi
    ;;
  esac
  same "$etc" "$etc_seen" || return 3
  return 1
}

admitted() { # whether slurmctld may be asked to take over /etc/slurm: 0 it started with these files in a
  # trial, 1 it refused them, 2 nobody knows, 3 they are no longer there; what it said is in answer.
  # Files of users come without the operator. slurmctld sends them to every slurmd before it reads
  # them itself, and where slurmd cannot read one no job starts, so none may get that far untried.
  case $tried in
  "$wanted ok") return 0 ;;
  "$wanted refused: "*)
    answer=${tried#* refused: }
    return 1
    ;;
  esac
  command -v slurmctld >/dev/null || return 0
  attempt "$etc" "$etc_seen" "$longest"
  code=$?
  answer=$words
  if [ "$code" = 2 ]; then
    longest=$((longest * 2 < 300 ? longest * 2 : 300))
  fi
  return "$code"
}

runs_with() { # notes what slurmctld runs with
  applied=$1
  printf '%s' "$applied" >"$applied_file"
}

took_over() { # notes and reports that slurmctld runs with the files
  runs_with "$wanted"
  report "effective $applied"
}

later() { # what could not be done now is done after a pause that grows
  pause=$((pause * 2 < 60 ? pause * 2 : 60))
  due=$((SECONDS + pause))
}

