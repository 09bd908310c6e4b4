"""Settings of Sphinx for these pages, see docs/how-to/site.md: Markdown by MyST, and a notebook that the build runs."""

import re
from importlib.resources import files
from typing import Any

from orthobench import __version__
from orthobench.report.site.pages import DOCS, MENU
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
html_css_files = ["tables.css", "site.css"]
FONTS = {"font-stack": "system-ui, sans-serif", "font-stack--monospace": 'ui-monospace, "SF Mono", Consolas, monospace'}


def _palette(block: str) -> dict[str, str]:
    """Furo's names for the colours of the site, from a block of its style."""
    found = dict(re.findall(r"--(\w+): (#\w+)", block))
    return {
        "color-foreground-primary": found["ink"],
        "color-foreground-secondary": found["soft"],
        "color-background-primary": found["paper"],
        "color-background-secondary": found["raised"],
        "color-background-border": found["line"],
        "color-brand-primary": found["accent"],
        "color-brand-content": found["accent"],
        "color-brand-visited": found["accent"],
        "color-announcement-background": found["paper"],
        "color-announcement-text": found["soft"],
    }


_, _light, _dark, *_ = (
    (files("orthobench.report") / "templates" / "style.css").read_text(encoding="utf-8").split(":root")
)
html_theme_options = {
    "light_css_variables": FONTS | _palette(_light),
    "dark_css_variables": _palette(_dark),
}


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
    """Set the menu of the site above these pages, whose folder lies in the site's."""
    up = "../" * (page.count("/") + 1)
    pages = "".join(f'<a href="{up}{path}">{text}</a>' for path, text in MENU)
    context["theme_announcement"] = (
        f'<a class="name" href="{up}index.html">orthobench</a><nav aria-label="Pages">{pages}'
        f'<a href="{up}{DOCS}" aria-current="page">Docs</a></nav>'
    )


def setup(app: Any) -> None:
    """Connect to Sphinx's events."""
    app.connect("source-read", _lead_to_the_site)
    app.connect("html-page-context", _announce)
