"""results/site: everything that is recorded, as pages that open from a folder without a network.

`collected.py` makes one tidy results.json of the records, and everything else reads that alone: `pages.py` chooses what
a page shows, `charts.py` writes the specifications of its figures, and the templates in ../templates/site set them.
"""
