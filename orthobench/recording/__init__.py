"""What a run leaves behind: its folder, record, checkpoints and curves."""
