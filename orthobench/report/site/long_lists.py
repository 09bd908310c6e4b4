"""The rows of tables and the pairs of lists as HTML, without a template: a site has a million cells of tables."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from orthobench.common.terminal import visible
from orthobench.report.site.plots import LinkedCell, LinkedTable, order, shown

if TYPE_CHECKING:
    from markupsafe import Markup

SHORT = 30  # characters of a text that stays on one line


@lru_cache(1 << 16)  # runs have most of their words in common
def escaped(text: str) -> str:
    """Text for HTML, with what would change the direction of writing written out."""
    from markupsafe import escape

    return str(escape(visible(text)))


def table_rows(table: LinkedTable, root: str) -> "Markup":
    """The rows of a table, the first cell of each as its header.

    Args:
        table: the table; all text in it is escaped.
        root: what leads from the page to the root of the site.
    """
    from markupsafe import Markup

    def linked(cell: LinkedCell, text: str) -> str:
        about = f' title="{escaped(cell.title)}"' if cell.title else ""
        if cell.href:
            return f'<a href="{root}{escaped(cell.href)}"{about}>{escaped(text)}</a>'
        return f"<span{about}>{escaped(text)}</span>" if about else escaped(text)

    kinds = ["number" if header in table.numeric else "" for header in table.headers]
    lines = []
    for row, name in zip(table.rows, table.ids or [""] * len(table.rows), strict=True):
        first, *others = row
        cells = [f'<th scope="row">{linked(first, shown(first.value))}</th>']
        for cell, kind in zip(others, kinds[1:], strict=False):
            text, value = shown(cell.value), order(cell.value)
            names = " ".join(filter(None, (kind, "short" if len(text) < SHORT else "", escaped(cell.mark))))
            about = (f' class="{names}"' if names else "") + ("" if value is None else f' data-value="{value}"')
            cells.append(f"<td{about}>{linked(cell, text)}</td>")
        head = f'<tr id="{escaped(name)}">' if name else "<tr>"
        lines.append(f"{head}{''.join(cells)}</tr>")
    return Markup("\n".join(lines))


def pairs(found: Iterable[tuple[str, Any]]) -> "Markup":
    """The terms and values of a list of definitions."""
    from markupsafe import Markup

    texts = ((name, "null" if value is None else str(value)) for name, value in found)
    lines = [f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in texts]
    return Markup("\n".join(lines))
