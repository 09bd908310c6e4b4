"""Tables as their files have them: the rows to run, the printed numbers and claims, the metrics that these are of."""
