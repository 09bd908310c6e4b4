"""Numbers alone: published ones, records, statistics, statuses."""
