"""What is watched while a model trains. One callback per file."""
