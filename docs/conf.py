"""Settings of Sphinx for these pages, see docs/how-to/site.md: Markdown by MyST, and a notebook that the build runs."""

import re
from typing import Any

from orthobench import __version__
from orthobench.study.catalogue import SHIPPED
from orthobench.study.tables.table import FAIR

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
html_static_path = ["_static"]
html_css_files = ["tables.css"]


LINK = re.compile(r"\[`(?P<name>[\w/]+)`(?P<rest>[^\]]*)\]\((?P<up>(?:\.\./)+)results/tables/(?P<paper>\w+)\.md\)")


def _page(link: re.Match) -> str:
    """Link to the site's page of a task or a paper, in place of one to a table in results/tables."""
    up, name, rest, paper = link["up"], link["name"], link["rest"], link["paper"]
    table = SHIPPED.table(name)
    place = f"tasks/{table.chosen(next(iter(table.rows)))['task']}" if table.track == FAIR else f"papers/{paper}"
    return f'<a href="{up}{place}.html"><code>{name}</code>{rest}</a>'


def _lead_to_the_site(app: Any, page: str, source: list[str]) -> None:
    source[0] = LINK.sub(_page, source[0])


def _announce(app: Any, page: str, template: str, context: dict, doctree: object) -> None:
    """Link to the site, which is beside the folder of these pages."""
    up = "../" * (page.count("/") + 1)
    context["theme_announcement"] = f'<a href="{up}index.html">Which cell? The results as pages</a>'


def setup(app: Any) -> None:
    """Connect to Sphinx's events."""
    app.connect("source-read", _lead_to_the_site)
    app.connect("html-page-context", _announce)
