"""How Sphinx sets these pages, see docs/site.md: Markdown by MyST, and one notebook that is run while they are made."""

from orthobench import __version__

project = "orthobench"
author = "the orthobench developers"
version = release = __version__
extensions = ["myst_nb"]
exclude_patterns = ["conf.py"]
suppress_warnings = ["myst.xref_missing", "myst.header"]  # links to files of the repository, which are not pages
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_heading_anchors = 4
html_theme = "furo"
html_title = "orthobench"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"announcement": '<a href="../index.html">Which cell? The results as pages</a>'}
