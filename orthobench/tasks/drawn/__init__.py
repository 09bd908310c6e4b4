"""Tasks whose sequences are drawn, one per file, named as in the configuration."""
