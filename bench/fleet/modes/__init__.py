"""The other shapes of a fleet: DaemonSet mode, a scheduled update, new keys, one taken over.

What one of them costs with a thousand workers, on the same place as the other fleet benches.
"""
