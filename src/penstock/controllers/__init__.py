"""The loops, one file per kind: observe, render and decide, act."""
