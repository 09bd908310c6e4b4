"""The templates of a site: they escape all text, and what they do not know is an error."""

import re
from functools import cache
from typing import TYPE_CHECKING

from orthobench.common.terminal import visible
from orthobench.report.site.long_lists import pairs, table_rows
from orthobench.report.site.places import slug

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SIGNS = {
    "reproduced": "✓",
    "better": "↑",
    "agrees, not precise": "≈",
    "undecided": "~",
    "not reproduced": "✗",
    "differs": "≠",
    "unstable": "!",
    "partial": "…",
    "underspecified": "?",
    "not run": "–",
    "count equal": "=",
    "count differs": "≠",
}


@cache
def environment() -> "Environment":
    """Environment that renders the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("orthobench.report", "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"marked": marked, "essay": essay, "slug": slug, "rows": table_rows, "pairs": pairs}
    environment.globals |= {"signs": SIGNS, "zip": zip}
    return environment


def marked(text: str) -> "Markup":
    """Text with what stands between backticks as code and between asterisks as emphasis; of a link, its words."""
    from markupsafe import Markup, escape

    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    coded = re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(visible(plain))))
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", coded))


def essay(text: str) -> "Markup":
    """A docstring: paragraphs, and what is indented in them as equations."""
    from markupsafe import Markup, escape

    parts = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines if line.strip()):
            own = "\n".join(line[4:] for line in lines)
            parts.append(Markup('<pre class="equation" tabindex="0">{}</pre>').format(own))
        else:
            pieces = " ".join(block.split()).split("`")
            words = [
                Markup("<code>{}</code>").format(one) if odd % 2 else escape(one) for odd, one in enumerate(pieces)
            ]
            parts.append(Markup("<p>{}</p>").format(Markup("").join(words)))
    return Markup("\n").join(parts)
