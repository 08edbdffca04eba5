# Runs sssd with the mounted sssd.conf, and anew when that has changed. sssd takes a file of its own
# only, and none that is a link, as mounted ones are; and sockets of root's group only, while the
# pod's fsGroup makes the folder hand on another.
given=/mnt/sssd/sssd.conf own=/etc/sssd/sssd.conf pipes=/var/lib/sss/pipes sssd=
trap 'kill $sssd 2>/dev/null; exit 0' TERM INT
mkdir -p "$pipes/private"
chown 0:0 "$pipes" "$pipes/private"
chmod u=rwx,go=rx,g-s "$pipes"
chmod u=rwx,go=,g-s "$pipes/private"
while :; do
  until [ -s "$given" ]; do sleep 2 & wait $!; done
  install -m 0600 "$given" "$own"
  /usr/sbin/sssd -i & sssd=$!
  while kill -0 $sssd 2>/dev/null && cmp -s "$given" "$own"; do sleep 2 & wait $!; done
  kill $sssd 2>/dev/null; wait $sssd
  sleep 1 & wait $!
done
