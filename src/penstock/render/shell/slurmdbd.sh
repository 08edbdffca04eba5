# Runs slurmdbd, has it take over a changed slurmdbd.conf, and says whether its database answers.
#
# slurmdbd reads its file again on SIGHUP, the database's address and password included, and ends on
# one that it cannot read. So a changed file is tried first: by a slurmdbd that only looks at the
# database's version (-u). While slurmdbd waits for its database it has no port and takes no signal;
# then it is started again, which costs nothing. So is one before 25.11, as 24.11 keeps the address and
# the password that it began with (25.05 was not tried); slurmctld keeps records for a moment then.
#
# Each line on stdout that begins with "penstock:" is read by the operator; HASH is one over jwt.key
# and slurmdbd.conf, so that nobody can guess a password by it:
#   effective HASH            slurmdbd runs with the file
#   refused HASH: WORDS       it could not read it, and keeps what it has
#   database ok               a client of slurmdbd was answered
#   database lost: WORDS      none was; what it was told
# WORDS are cut and made one line of by `plain`. slurmdbd's own output goes through a filter, so that none of
# its lines, in which names of users stand, begins like these or is long enough to be split.
# The pod is ready while $state/ready is there.
#
# Where this script runs as root, SLURMDBD_USER is the user that slurmdbd becomes. It accepts only files
# of that user, which files of a Secret never are. So it reads copies in SLURMDBD_ETC.
set -u
umask 077
export LC_ALL=C

etc=${SLURM_ETC:-/etc/slurm}
read=${SLURMDBD_ETC:-$etc}
user=${SLURMDBD_USER:-}
auth=${SLURMDBD_AUTH:-auth/slurm}
state=${SLURMDBD_STATE:-/run/penstock}
tick=${SLURMDBD_TICK:-0.2}
calm=${SLURMDBD_CALM:-15}

plain() { # line breaks become " / "; control characters, and Unicode's separators and marks of direction, "?"
  tr '\000-\011\013-\037\177' '?' |
    sed -E ':all; $!{N; b all}; s/\n/ \/ /g
s/\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]/?/g' | cut -b 1-2000
}

report() { printf 'penstock: %s\n' "$(printf '%s' "$*" | plain)"; }

line() { sed ':all; N; $!b all; s/\n/ \/ /g'; }

content() { # the hash; nothing, and false, when the kubelet has just taken the files away
  # In a subshell, so that both files are of one generation.
  (cd -P "$etc/..data" 2>/dev/null || cd "$etc" || exit 1
    [ -f slurmdbd.conf ] && cat jwt.key slurmdbd.conf | sha256sum | cut -d ' ' -f 1) 2>/dev/null
}

setting() { # the last value of a key in slurmdbd.conf
  sed -n -E "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\"?([^\"#[:space:]]*).*/\1/Ip" \
    "$etc/slurmdbd.conf" | tail -n 1
}

place() { # copies the files to the folder that slurmdbd reads, each by rename
  [ "$read" != "$etc" ] || return 0
  for file in "$etc"/*; do
    name=${file##*/}
    install -o "$user" -m 600 "$file" "$read/.$name" && mv -f "$read/.$name" "$read/$name"
  done
  # Other users of the image run clients.
  chmod -f a+r "$read"/*.conf* && chmod 600 "$read/slurmdbd.conf"
}

rereads() { # whether slurmdbd is 25.11 or later; it wants a file even to say its version
  mkdir -p "$state/version"
  printf '%s\n' DbdHost=localhost StorageType=accounting_storage/mysql >"$state/version/slurmdbd.conf"
  release=$(SLURM_CONF=$state/version/slurm.conf timeout 10 slurmdbd -V 2>/dev/null)
  rm -rf "$state/version"
  case $release in '' | *\ 2[0-4].* | *\ 25.0*) return 1 ;; esac
}

run_slurmdbd() {
  place
  rm -f "$state/ready"
  port=$(setting DbdPort)
  port=${port:-6819}
  slurmdbd -D "$@" >&"$filtered" 2>&1 &
  child=$!
  ask_at=0
}

listens() { : 2>/dev/null <>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null

attempt() { # starts a slurmdbd that only reads: 1 it refuses the files, 0 it does not, or nobody knows
  trial=$state/trial
  rm -rf "$trial"
  mkdir -p "$trial"
  cp -L "$etc"/* "$trial/" 2>/dev/null
  chmod -R u+rw "$trial"
  # The socket by which clients of this pod sign their requests is the real one's.
  [ "$auth" != auth/slurm ] || printf '\nAuthInfo=disable_sack\n' >>"$trial/slurmdbd.conf"
  [ -z "$user" ] || chown -R "$user" "$trial"
  SLURM_CONF=$trial/slurm.conf timeout -k 1 3 slurmdbd -D -u >"$state/said" 2>&1
  code=$?
  rm -rf "$trial"
  # One that waits for its database is ended after a while: it has read its file by then.
  [ "$code" != 124 ] && grep -q 'fatal: ' "$state/said" || return 0
  words=$(sed -E 's/^\[[^]]*\] //; s/^slurmdbd: //' "$state/said" | grep -v AuthInfo |
    sed "s#$trial#$etc#g" | tail -n 2 | line)
  return 1
}

take_over() {
  if ! attempt; then
    [ "$told" = "$words" ] || report "refused $wanted: $words"
    told=$words
    pause=$((pause * 2 < 60 ? pause * 2 : 60))
    due=$((SECONDS + pause))
    return
  fi
  if listens && rereads; then
    place
    kill -HUP "$child"
  else
    kill -TERM "$child"
    wait "$child"
    run_slurmdbd "$@"
  fi
  ask_at=0 told=
  applied=$wanted
  report "effective $applied"
}

ask() { # has a client asked through slurmdbd what only the database knows
  ask_at=$((SECONDS + 1))
  if ! listens; then
    rm -f "$state/ready"
    return
  fi
  if ! command -v sacctmgr >/dev/null; then
    : >"$state/ready"
    ask_at=$((SECONDS + calm))
    return
  fi
  cat >"$state/slurm.conf" <<CONF
ClusterName=none
SlurmctldHost=localhost
SlurmUser=slurm
AuthType=$auth
AuthInfo=use_client_ids
CredType=cred/${auth#auth/}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$(hostname)
AccountingStoragePort=$port
CONF
  if answer=$(SLURM_CONF=$state/slurm.conf timeout -k 1 10 sacctmgr -n show cluster format=cluster 2>&1); then
    : >"$state/ready"
    ask_at=$((SECONDS + calm))
    [ "$database" = ok ] || report "database ok"
    database=ok
    return
  fi
  rm -f "$state/ready"
  ask_at=$((SECONDS + 2))
  answer=$(printf '%s' "${answer:-sacctmgr had no answer in 10 s}" | sed 's/^sacctmgr: //' | line)
  [ "$database" = "$answer" ] || report "database lost: $answer"
  database=$answer
}

mkdir -p "$state" "$read"
[ -z "$user" ] || chmod 711 "$state"
rm -f "$state/ready"
# It outlives a SIGTERM to all of the container, as slurmdbd's last words are to be seen.
exec {filtered}> >(trap '' TERM INT HUP; exec sed -u -E 's/^penstock:/ &/; s/^(.{8000}).*/\1/')
filter=$!
# A builtin waits, so that looking often starts no process: nobody ever writes to the pipe.
[ -p "$state/never" ] || mkfifo "$state/never"
exec 9<>"$state/never"

child= stopping= seen= wanted= told= database= words= port=6819
pause=1 due=0 ask_at=0
trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

until applied=$(content); do read -r -t "$tick" -u 9; done
wanted=$applied
run_slurmdbd "$@"
report "effective $applied"

while :; do
  read -r -t "$tick" -u 9
  if ! kill -0 "$child" 2>/dev/null; then
    wait "$child"
    code=$?
    # A SIGHUP that came before slurmdbd listened to signals ended it.
    if [ "$code" != 129 ] || [ -n "$stopping" ]; then
      exec {filtered}>&-
      wait "$filter" 2>/dev/null
      exit "$code"
    fi
    run_slurmdbd "$@"
  fi
  [ -z "$stopping" ] || continue
  if [ -z "$seen" ] || ! [ "$etc/..data" -ef "$etc/$seen" ]; then
    seen=$(readlink "$etc/..data")
    if now=$(content) && [ -n "$now" ]; then
      [ "$now" = "$wanted" ] || pause=1 due=0 told=
      wanted=$now
    else
      seen=
    fi
  fi
  [ "$wanted" = "$applied" ] || [ "$SECONDS" -lt "$due" ] || take_over "$@"
  [ "$SECONDS" -lt "$ask_at" ] || ask
done
