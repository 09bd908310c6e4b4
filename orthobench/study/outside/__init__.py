"""Results of others: packs of finished runs, made here for others and read from others, whom nobody here knows."""
