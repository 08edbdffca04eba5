# Copies Slurm's files to a directory of its own, owned by SlurmUser: sackd insists on that.
set -e
umask 077
for file in /mnt/slurm/*.conf /mnt/slurm/*.key /mnt/slurm/*.jwks; do
  [ -f "$file" ] || continue
  copy=/mnt/etc/slurm/${file##*/}
  cp "$file" "$copy"
  case $copy in
  *.key | *.jwks | */slurmdbd.conf) chmod 600 "$copy" ;;
  *) chmod 644 "$copy" ;;
  esac
  chown 401:401 "$copy"
done
chown 401:401 /mnt/etc/slurm
chmod 755 /mnt/etc/slurm
