"""The kinds of `penstock.dev`."""
