"""How fast the parts are on this machine: ratios measured side by side in one process."""
