"""The runs that tables still lack: planned, chosen by their price, done and recorded."""
