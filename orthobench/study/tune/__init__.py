"""Tuning: an Optuna study beside the runs, and its trials, each an ordinary run."""
