# Runs the script in $1 with the configuration of the jail, as slurm, or as root where that is
# PENSTOCK_SLURM_USER.
#
# An image may lack the link from /etc/slurm, and the users of the jail. It may also have no user
# slurm at all: then SlurmUser is root, and the script runs as root. A trial start of slurmctld needs
# the JWT key as a file that only its user can read.
set -u
jail=${JAIL:-/mnt/jail}

# MPI plug-ins of the image, for the operator: slurm.conf must name none that it lacks.
mpi=$(find -L /usr/lib /usr/lib64 /usr/local/lib -maxdepth 3 -name 'mpi_*.so' 2>/dev/null |
  sed -E 's,.*/mpi_([A-Za-z0-9_]+)[.]so$,\1,' | sort -u | tr '\n' ' ')
[ -z "$mpi" ] || printf 'penstock: mpi %s\n' "${mpi% }"

if [ "$(id -u)" = 0 ]; then
  [ "$(readlink /etc/slurm)" = "$jail/etc/slurm" ] || {
    rm -rf /etc/slurm
    ln -s "$jail/etc/slurm" /etc/slurm
  }
  if ! id -u slurm >/dev/null 2>&1; then
    for file in passwd group; do
      ln -sf "$jail/etc/$file" "/etc/$file"
    done
  fi
  user=root
  [ "${PENSTOCK_SLURM_USER:-}" = root ] || ! id -u slurm >/dev/null 2>&1 || user=slurm
  install -o "$user" -m 400 "$JWT_KEY" "$TRIAL_JWT_KEY"
  if [ "$user" = slurm ]; then
    chown slurm: /run/reconfigure
    exec setpriv --reuid=slurm --regid=slurm --init-groups -- bash -c "$1"
  fi
fi
exec bash -c "$1"
