"""The speed of the parts on this machine, as ratios between variants that take turns in one process."""
