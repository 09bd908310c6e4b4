"""Records of the runs of tables, and of those in folders of a user's own."""
