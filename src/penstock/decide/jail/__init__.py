"""Policies of the jail, the root volume that logins and jobs of a cluster share."""
