"""The reconcilers of the kinds of penstock.dev."""
