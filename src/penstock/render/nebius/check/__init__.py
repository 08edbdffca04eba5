"""The objects of an ActiveCheck: its CronJob and Jobs, its script, and the rights of its pods."""
