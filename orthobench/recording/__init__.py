"""The files that a run writes: its folder, record, checkpoints and curves."""
