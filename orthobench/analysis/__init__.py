"""What is computed from records and published numbers: statistics, statuses, claims and rankings."""
