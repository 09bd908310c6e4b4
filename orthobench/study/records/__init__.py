"""What is recorded of the runs of tables, and what is found in folders of a user's own."""
