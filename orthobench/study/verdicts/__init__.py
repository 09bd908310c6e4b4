"""Tables of all tracks beside their records: what holds, what does not, and which cell is best."""
