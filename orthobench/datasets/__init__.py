"""Finding, verifying and parsing real data. One data set per file."""
