"""Published numbers, statistics, tables, figures, citations. Reads only records and published numbers."""
