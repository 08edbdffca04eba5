# Runs sssd with the debug level in $1 and the mounted sssd.conf, and again when that or a
# certificate has changed. With level 0, the default of the field, the log has what sssd reports by
# itself, results of binds, new connections, and search bases of sssd.conf that do not exist. All but
# the first are traces (0x0400): the operator reads them, and all other traces are left out.
#
# sssd takes only a file of root's own, and none that is a link as mounted ones are: it gets a copy,
# without carriage returns. A Secret that is deleted changes nothing. While there is no sssd.conf, or
# sssd ends with it, sssd runs with a domain that has nobody: who asks gets an answer, and probes
# find the sockets.
level=$1 root=${SSSD_ROOT:-} run=${SSSD:-/usr/sbin/sssd}
pause=${SSSD_PAUSE:-2} patience=${SSSD_PATIENCE:-60}
given=$root/etc/sssd/sssd.conf certificates=$root/mnt/ldapCA pipes=$root/var/lib/sss/pipes
kept=$root/run/penstock-sssd.kept own=$root/run/penstock-sssd.conf
traces=$root/run/penstock-sssd.traces
nothing='4294967295 0' sssd= failed=
trap 'kill $sssd 2>/dev/null; wait $sssd; exit 0' TERM INT

sum() { cat "$@" 2>/dev/null | cksum; }
differs() { [ "$2" != "$nothing" ] && [ "$1" != "$2" ]; }
has_domain() { grep -q '^[[:space:]]*\[\(domain\|application\)/' "$kept"; }
is_late() { [ $(($(date +%s) - began)) -ge "$patience" ]; }
without_traces() {
  sed -u -n -e '/Connection established\./{p;d}' -e '/Bind result: /{p;d}' \
    -e '/ldap_search_ext called: .* base: \[.*\]; msgid/{p;d}' -e '/Search result: /{p;d}' \
    -e '/(0x0400)/d' -e '/^\[RID#/d' -e p
}
bases() {
  name='ldap_\(user_\|group_\)\{0,1\}search_base' value='\([^?]*[^?[:space:]]\)'
  sed -n "s/^[[:space:]]*$name[[:space:]]*=[[:space:]]*$value.*/\2/p" "$own"
}
has() { printf '%s\n' "$1" | grep -qixF -e "$base"; }
# A search and its result are two lines of one request. The result is shown with its base when a base
# of sssd.conf is gone, and when it is there again. Entries that a group names may be missing.
with_bases() {
  gone=
  while IFS= read -r line; do
    case $line in
      *'ldap_search_ext called: '* | *'Search result: '*) ;;
      *)
        printf '%s\n' "$line"
        continue
        ;;
    esac
    request=${line#*'[RID#'} request=${request%%]*}
    case $request in '' | *[!0-9]*) request=0 ;; esac
    case $line in
      *'ldap_search_ext called: '*)
        base=${line##*' base: ['} base=${base%]; msgid*}
        eval "base_$request=\$base"
        continue
        ;;
    esac
    eval "base=\${base_$request-}; unset base_$request"
    [ "$base" ] || continue
    case $line in
      *'Search result: No such object(32)'*)
        if has "$gone" || ! has "$(bases)"; then continue; fi
        gone=$(printf '%s\n' "$gone" "$base")
        ;;
      *)
        if [ -z "$gone" ] || ! has "$gone"; then continue; fi
        gone=$(printf '%s\n' "$gone" | grep -vixF -e "$base" -e '')
        ;;
    esac
    printf '%s, base: [%s]\n' "$line" "$base"
  done
}
nobody() {
  printf '%s\n' '[sssd]' 'services = nss, pam' 'domains = nobody' '[domain/nobody]' \
    'id_provider = proxy' 'proxy_lib_name = files' 'auth_provider = none' \
    'access_provider = permit' 'min_id = 4000000000'
}

if [ ! -x "$run" ]; then
  echo "sssd: this image has no $run; name another one in sssd.image"
  # So that the kubelet has seen it run, and starts the daemon.
  sleep "$pause" & wait $!
  exit 127
fi
mkdir -p "$pipes/private"
chmod 755 "$pipes"
chmod 700 "$pipes/private"
for file in "$kept" "$own"; do
  : >"$file"
  chmod 600 "$file"
done
while :; do
  conf=$(sum "$given") trusted=$(sum "$certificates"/*)
  [ "$conf" = "$nothing" ] || tr -d '\r' <"$given" >"$kept"
  files="$(sum "$kept") $trusted" declared=
  if [ ! -s "$kept" ]; then
    echo "sssd: $given is absent or empty; users of a directory are unknown until it is there"
  elif [ "$files" != "$failed" ]; then
    declared=yes
  fi
  if [ "$declared" ]; then cat "$kept"; else nobody; fi >"$own"
  began=$(date +%s)
  if [ "$level" != 0 ]; then
    "$run" --interactive -c "$own" -d "$level" --logger=stderr & sssd=$!
  elif grep -q '^[[:space:]]*debug_level' "$own"; then
    "$run" --interactive -c "$own" --logger=stderr & sssd=$!
  else
    rm -f "$traces"
    mkfifo "$traces"
    without_traces <"$traces" | with_bases &
    "$run" --interactive -c "$own" -d 0x0470 --logger=stderr >"$traces" 2>&1 & sssd=$!
  fi
  while kill -0 $sssd 2>/dev/null; do
    sleep "$pause" & wait $!
    if differs "$conf" "$(sum "$given")" || differs "$trusted" "$(sum "$certificates"/*)"; then
      echo "sssd: sssd.conf or a certificate has changed; starting again with it"
      break
    fi
    if [ -z "$declared" ] && has_domain && is_late; then
      failed=
      break
    fi
  done
  if kill $sssd 2>/dev/null; then
    wait $sssd
    continue
  fi
  if [ "$declared" ] && ! is_late; then
    failed=$files
    echo "sssd: it ended with $given, for the reason above; users of a directory are unknown"
  fi
  sleep "$pause" & wait $!
done
