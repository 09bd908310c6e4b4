"""Seconds and bytes of runs and of steps: kept, scaled or measured."""
