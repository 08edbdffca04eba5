# Creates the user USER_NAME in the jail; it stays as it is where it exists.
set -eu
jail=/mnt/jail
home=${USER_HOME:-/opt/soperator-home/$USER_NAME}
if chroot "$jail" getent passwd "$USER_NAME" >/dev/null; then
    echo "user $USER_NAME exists"
    exit 0
fi
mkdir -p "$jail$(dirname "$home")"
chroot "$jail" useradd --create-home --home-dir "$home" --shell /bin/bash "$USER_NAME"
if [ -n "${USER_SSH_KEY:-}" ]; then
    chroot "$jail" install -d -m 0700 -o "$USER_NAME" -g "$USER_NAME" "$home/.ssh"
    printf '%s\n' "$USER_SSH_KEY" >"$jail$home/.ssh/authorized_keys"
    chroot "$jail" chown "$USER_NAME:" "$home/.ssh/authorized_keys"
    chmod 0600 "$jail$home/.ssh/authorized_keys"
fi
echo "created user $USER_NAME"
