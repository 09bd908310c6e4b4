"""Runs: built, trained, resumed, recorded."""
