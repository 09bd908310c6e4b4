"""Files of figures: SVG, PNG or PDF, with a title, and in a style of the user's own."""

import contextlib
import io
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from orthobench.common.schema import did_you_mean
from orthobench.common.terminal import complain, visible
from orthobench.errors import ConfigError
from orthobench.report import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
DOTS = 200  # of a PNG, an inch
NOTHING: dict[str, dict[str, None]] = {  # metadata that would differ from day to day, or from version to version
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
LARGEST = 1 << 20  # bytes of a style
REFUSED = {"backend", "backend_fallback", "interactive", "toolbar", "webagg.open_in_browser", "savefig.directory"}


@dataclass(frozen=True)
class Look:
    """Look of figures.

    Attributes:
        form: one of FORMATS.
        logy: whether the axis of the values is logarithmic.
        style: a style file (`.mplstyle`), or the name of a style that matplotlib has; None for ours.

    Raises:
        ConfigError: there is no such format.
    """

    form: str = "svg"
    logy: bool = False
    style: str | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMATS:
            raise ConfigError(f"--format {self.form} is not known: {did_you_mean(self.form, FORMATS)}")

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Make and save figures in this style.

        Raises:
            ConfigError: there is no such style, a line of it is no setting, or a figure cannot be drawn in it.
        """
        drawing.import_with_defaults()
        import matplotlib

        with matplotlib.rc_context():
            if self.style is None:
                yield
                return
            matplotlib.rcParams.update(_settings(self.style))
            try:
                yield
            except (RuntimeError, ValueError, OSError) as error:  # as of `text.usetex` where there is no LaTeX
                why = " ".join(str(error).split())[:200]
                raise ConfigError(
                    f"--style {self.style}: a figure cannot be drawn in it: {why}"
                    "; change that line of the style, or leave --style out."
                ) from error

    def saved(self, figure: "Figure", title: str = "") -> bytes:
        """Content of a file with the figure; the same figure gives the same bytes."""
        if title:
            inches = figure.get_size_inches()[0]
            figure.suptitle(fill(drawing.plain(title), int(inches * 11)), fontsize=10)
        if self.logy:
            for axes in figure.axes:
                if not _logarithmic(axes):
                    complain(
                        f"orthobench: --logy leaves {title or 'a figure'} as it is: it has values that are not > 0."
                    )
        if self.form == "svg" and self.style is None:
            return drawing.svg(figure).encode()
        made = io.BytesIO()
        about: Any = {"svg": {"Date": None, "Creator": None}, **NOTHING}[self.form]
        figure.savefig(made, format=self.form, dpi=DOTS, metadata=about)
        return made.getvalue()


def _logarithmic(axes: Any) -> bool:
    """Make the axis of values logarithmic; names and pictures have no such axis. False where values are not above 0."""
    from matplotlib.ticker import FixedLocator

    if isinstance(axes.yaxis.get_major_locator(), FixedLocator) or axes.images or not axes.lines:
        return True
    above = min(drawing.heights(axes)) > 0
    if above:
        axes.set_yscale("log")
    return above


def _settings(style: str) -> Any:
    """The settings of a style.

    Raises:
        ConfigError: there is none, or a line of it is wrong.
    """
    import matplotlib
    import matplotlib.style

    path = Path(style)
    if not path.is_file():
        known = matplotlib.style.available
        if style in known:
            return matplotlib.style.library[style]
        hint = "name a file that is there" if os.sep in style or path.suffix else did_you_mean(style, known)
        raise ConfigError(f"--style {style} is neither a style file nor a style of matplotlib: {hint}.")
    if path.stat().st_size > LARGEST:
        raise ConfigError(
            f"--style {style} has {path.stat().st_size:,} bytes, which is no style file"
            ": name a style file of matplotlib."
        )
    said = _Said()
    log = logging.getLogger("matplotlib")
    log.addHandler(said)
    spread, log.propagate = log.propagate, False
    try:
        found = matplotlib.rc_params_from_file(path, fail_on_error=True, use_default_template=False)
    except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--style {style}: {visible(' '.join(str(error).split()))[:200].rstrip('.')}; "
            "correct that line of the file."
        ) from error
    finally:
        log.removeHandler(said)
        log.propagate = spread
    if said.sentences:
        raise ConfigError(
            f"--style {style}: {visible(' '.join(said.sentences[0].split()))[:200].rstrip('.')}"
            "; correct that line of the file."
        )
    return {key: value for key, value in found.items() if key not in REFUSED}


class _Said(logging.Handler):
    """Keeps what matplotlib complains of, such as a setting that it does not know."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.sentences.append(record.getMessage().strip().partition("\n")[0])
