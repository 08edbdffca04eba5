"""What controllers observe of one cluster: members, references, keys and connections."""
