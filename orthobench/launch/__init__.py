"""Many runs: sweeps and tables, each run in a process of its own."""
