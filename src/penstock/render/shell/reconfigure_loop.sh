trying=
trap '[ -z "$trying" ] || kill -KILL "$trying"; exit 0' TERM INT

applied=$(saved "$applied_file")
# A builtin waits and a builtin compares, so that looking often starts no process: nobody ever writes
# to the pipe.
[ -p "$state/never" ] || mkfifo "$state/never"
exec 9<>"$state/never"
wait_a_tick() { read -r -t "$tick" -u 9; }

release=$(timeout 10 slurmctld -V 2>/dev/null | sed -nE 's/^[^ ]+ ([0-9][0-9.]*).*/\1/p')
[ -z "$release" ] || report "slurm $release"
until wanted=$(content "$etc"); do wait_a_tick; done
if [ -z "$applied" ]; then # first start in this pod: slurmctld is about to read these very files
  runs_with "$wanted"
fi
[ "$applied" = unknown ] || report "effective $applied"
[ "$wanted" = "$applied" ] || say "/etc/slurm changed while nobody looked"
tried=$(saved "$tried_file")
done=$(saved "$asked_file")
candidate_seen= etc_seen= proposed= asked= live= restart= pending= told= told_nothing=
pause=1 due=$SECONDS again=0 patience=${RECONFIGURE_PATIENCE:-8}

while :; do
  wait_a_tick

  # The kubelet puts another generation of a volume in place at once. What is annotated at the pod
  # comes with the candidates.
  if ! same "$candidate" "$candidate_seen" || ! same "$etc" "$etc_seen"; then
    candidate_seen=$(readlink "$candidate/..data")
    etc_seen=$(readlink "$etc/..data")
    live=$(saved "$candidate/.live")
    asked=$(saved "$candidate/.reconfigure")
    if [ -e "$candidate/slurm.conf" ]; then
      now=$(content "$candidate") || candidate_seen=
    else
      now=
    fi
    if [ -n "$now" ] && [ "$now" != "$proposed" ]; then
      proposed=$now
      patience=${RECONFIGURE_PATIENCE:-8}
      case $tried in
      "$proposed "*) report "tried $tried" ;; # by a former container of this pod
      *) try ;;
      esac
    fi
    now=$(content "$etc") || etc_seen=
    if [ -n "$now" ] && [ "$now" != "$wanted" ]; then
      wanted=$now
      pause=1 due=$SECONDS told= pending=
      [ "$wanted" != "$applied" ] || report "effective $applied"
    fi
  fi

  # Refused candidates are tried again now and then: nodes that they name may have registered.
  case $tried in
  "$proposed refused: "*) [ "$SECONDS" -lt "$again" ] || try ;;
  *) [ -z "$told_nothing" ] || [ "$told_nothing" != "$proposed" ] || [ "$SECONDS" -lt "$again" ] || try ;;
  esac

  if [ "$wanted" != "$applied" ] && [ "$live" = "$wanted" ] && [ "$applied" != unknown ]; then
    took_over # it needs nothing of slurmctld
  fi
  [ "$wanted" = "$applied" ] || restart=$(saved "$candidate/.restart")
  if [ "$wanted" != "$applied" ] && [ "$restart" = "$wanted" ]; then
    if [ "$pending" != "$wanted" ]; then
      # It may start with these files now and be up before others come in their place.
      [ "$applied" = unknown ] || runs_with unknown
      pending=$wanted
      report "pending $wanted"
    fi
    continue
  fi
  if [ "$wanted" = "$applied" ] && [ "$asked" = "$done" ]; then
    continue
  fi
  [ "$SECONDS" -ge "$due" ] || continue

  { [ "$wanted" = "$applied" ] || admitted; } && reconfigure
  case $? in
  0)
    took_over
    outcome=ok
    ;;
  1)
    later
    outcome="refused: $answer"
    [ "$wanted" = "$applied" ] || [ "$told" = "$outcome" ] || report "refused $wanted: $answer"
    told=$outcome
    ;;
  3) continue ;; # the refusal is of nobody knows which; the next look takes up what is there now
  *)
    later
    # It may start with these files now and be up before others come in their place.
    [ "$wanted" = "$applied" ] || runs_with unknown
    [ "$told" = "waits: $answer" ] || report "waits $wanted: $answer"
    told="waits: $answer"
    continue
    ;;
  esac
  if [ "$asked" != "$done" ]; then
    report "reconfigured $asked $outcome"
    done=$asked
    printf '%s' "$done" >"$asked_file"
  fi
done
