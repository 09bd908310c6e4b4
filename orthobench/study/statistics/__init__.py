"""Statistics of repeated runs, and the rule by which a number is judged."""
