# Prints what a daemon logs: a named pipe stands where its log file should be.
[ -p "$SOCKET" ] || { rm -f "$SOCKET"; mkfifo "$SOCKET"; }
chmod 777 "$SOCKET"
# Opened for reading and writing: no end of file when the daemon restarts, and no wait for either end.
trap 'kill $! 2>/dev/null; exit 0' TERM INT
cat <>"$SOCKET" &
wait
