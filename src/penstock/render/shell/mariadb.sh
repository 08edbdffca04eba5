# Runs MariaDB for slurmdbd, with any image that has mariadbd, mariadb and mariadb-install-db.
#
# The data folder is made under another name and renamed, so that a start which was killed is repeated.
# At each start the server itself creates the database, and its user with the password of the mounted
# Secret: nobody logs in as root, and a changed or lost password needs a restart only.
# $run/client.cnf is the login of that user, for the readiness probe.
set -eu
umask 077
export LC_ALL=C

data=${DATABASE_DATA:-/var/lib/penstock/mariadb}
run=${DATABASE_RUN:-/run/penstock}
secret=${DATABASE_SECRET:-/etc/penstock/database/password}

mkdir -p "$run"
rm -rf "$data/new"
if ! [ -d "$data/mysql" ]; then
  mariadb-install-db --no-defaults --datadir="$data/new" --skip-test-db --force \
    --auth-root-authentication-method=socket >"$run/install.log" 2>&1 || {
    head -n 5 "$run/install.log" >&2
    exit 1
  }
  sync
  mv "$data/new" "$data/mysql"
fi

password=$(cat "$secret")
# In SQL a quote is written twice; in both a backslash is.
sql=$(printf '%s' "$password" | sed "s/\\\\/\\\\\\\\/g; s/'/''/g")
file=$(printf '%s' "$password" | sed 's/\\/\\\\/g; s/"/\\"/g')
# In a grant, _ is a pattern for any character.
pattern=$(printf '%s' "$DATABASE_NAME" | sed 's/_/\\_/g')
cat >"$run/init.sql" <<SQL
CREATE DATABASE IF NOT EXISTS \`$DATABASE_NAME\`;
CREATE USER IF NOT EXISTS '$DATABASE_USER'@'%' IDENTIFIED BY '$sql';
ALTER USER '$DATABASE_USER'@'%' IDENTIFIED BY '$sql';
GRANT ALL PRIVILEGES ON \`$pattern\`.* TO '$DATABASE_USER'@'%';
SQL
cat >"$run/client.cnf" <<CONF
[client]
user=$DATABASE_USER
password="$file"
socket=$run/mariadb.sock
CONF

# innodb_snapshot_isolation: slurmdbd ends at a conflict of two of its threads otherwise.
# max_connect_errors: slurmdbd that waits may try for days.
exec mariadbd --no-defaults --datadir="$data/mysql" --tmpdir="$data" \
  --socket="$run/mariadb.sock" --pid-file="$run/mariadb.pid" --init-file="$run/init.sql" \
  --port="$DATABASE_PORT" --skip-name-resolve --skip-log-bin --character-set-server=utf8mb4 \
  --max-connect-errors=4294967295 --max-allowed-packet=64M --loose-innodb-use-native-aio=OFF \
  --innodb-buffer-pool-size="$DATABASE_POOL" --innodb-log-file-size="$DATABASE_LOG" \
  --innodb-lock-wait-timeout=900 --loose-innodb-snapshot-isolation=OFF "$@"
