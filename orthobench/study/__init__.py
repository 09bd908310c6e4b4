"""Studies: what is run for a table, what is recorded of it, and what follows from that."""
