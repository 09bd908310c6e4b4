"""Tasks of real data, one per file, named as in the configuration, and what they share."""
