"""Whole networks: embedding, stacked recurrent layers, readout; feed-forward stacks."""
