"""How Sphinx sets these pages, see docs/site.md: Markdown by MyST, and one notebook that is run while they are made."""

import re

from orthobench import __version__
from orthobench.config.table import FAIR, load

project = "orthobench"
author = "the orthobench developers"
copyright = author
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
html_static_path = ["_static"]
html_css_files = ["tables.css"]


def _page(link: re.Match) -> str:
    """A link to a table in results/tables as one to the page of the site that has it: of its task, or of its paper."""
    name, rest, paper = link.groups()
    table = load(name)
    place = f"tasks/{table.chosen(next(iter(table.rows)))['task']}" if table.track == FAIR else f"papers/{paper}"
    return f'<a href="../{place}.html"><code>{name}</code>{rest}</a>'


def _lead_to_the_site(app: object, page: str, source: list[str]) -> None:
    source[0] = re.sub(r"\[`([\w/]+)`([^\]]*)\]\(\.\./results/tables/(\w+)\.md\)", _page, source[0])


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _lead_to_the_site)
