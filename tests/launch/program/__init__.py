"""A program for launchers to start, which does what its words say."""
