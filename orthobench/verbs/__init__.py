"""The verbs of the command line, one per file; `main(arguments)` returns the exit code."""
