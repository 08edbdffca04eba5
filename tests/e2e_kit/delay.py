"""A link that takes its time, for kernels without netem.

Run as `python delay.py MILLISECONDS PID PID`: in the network of each process it makes a device
`delay0`, and carries packets between the two, each so much later. It ends when its standard input
does; the devices, and the routes over them, go with it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

DEVICE = "delay0"
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
"""Source: linux/if_tun.h."""
_LARGEST = 65536


def device(pid: int) -> int:
    """A new device in the network of a process: a descriptor that reads and writes its packets."""
    libc = ctypes.CDLL(None, use_errno=True)
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(space, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"setns to the network of {pid}")
    os.close(space)
    found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(found, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    return found


def carry(later: float, ends: tuple[int, int]) -> None:
    """Give each end what the other had, `later` seconds after it came, until SIGTERM."""
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    stop = sys.stdin.fileno()
    waiting: deque[tuple[float, int, bytes]] = deque()
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([*ends, stop], [], [], pause)
        if stop in ready:
            return
        now = time.monotonic()
        waiting += ((now + later, other[end], os.read(end, _LARGEST)) for end in ready)
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, packet = waiting.popleft()
            put(end, packet)


def put(end: int, packet: bytes) -> None:
    """Let a packet arrive. It is lost, as on any link, where the device is not up (EIO) or full."""
    try:
        os.write(end, packet)
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EAGAIN, errno.ENOBUFS):
            raise


def main() -> None:
    """Make both devices, print that, and carry."""
    milliseconds, *pids = map(int, sys.argv[1:])
    ends = device(pids[0]), device(pids[1])
    print("up", flush=True)
    carry(milliseconds / 1000, ends)


if __name__ == "__main__":
    main()
