"""The actions on a NodeSet's pods and PVCs."""
