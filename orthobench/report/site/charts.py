"""The figures as Vega-Lite, by Altair: one specification for each kind of plot.

Colours, ink and fonts are not in them: the script of the page sets these, light or dark. A text `@name` is filled in
there too, see `plots.Plot`.
"""

from functools import cache
from importlib import import_module
from typing import Any

from orthobench.common.packages import install
from orthobench.errors import ConfigError
from orthobench.report.site.catalogue import FAMILIES

MARKS, NAMES, ENDS = "marks", "names", "ends"  # layers that the script of the page looks for
PLACED = 14  # pixels of a name for which there has to be room; style.css draws it smaller, so that no two touch


def _lacking() -> ConfigError:
    return ConfigError(f"orthobench site needs Altair and vl-convert-python: {install('site')}.")


def altair() -> Any:
    """The package.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return import_module("altair")
    except ImportError as error:
        raise _lacking() from error


def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which needs nothing else.

    Raises:
        ConfigError: the package that holds them is not installed.
    """
    try:
        vl_convert = import_module("vl_convert")
    except ImportError as error:
        raise _lacking() from error
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"(() => {{\n{bundle}\n}})();\n"  # its names are not those of the page's own script


def cost() -> dict[str, Any]:
    """Quality against a cost, a mark for each cell; the line joins those that nothing cheaper beats."""
    alt = altair()
    base = _base().transform_filter("isValid(datum.mean) && isValid(datum['@cost'])")
    x = alt.X(
        field="@cost", type="quantitative", scale=alt.Scale(type="log", nice=False, padding=24), title="@cost_title"
    )
    y = alt.Y("mean:Q", scale=alt.Scale(type="linear", zero=False, nice=False, padding=14), title="@metric")
    front = base.transform_filter("datum['front_@cost']")
    trivial = _base().transform_aggregate(trivial="mean(trivial)").mark_rule(strokeDash=[2, 3], tooltip=None)
    return _spec(
        alt.layer(
            trivial.encode(y=alt.Y("trivial:Q", title="@metric")),
            front.mark_line(color="gray", interpolate="step-after", strokeWidth=1.5, opacity=0.5, tooltip=None).encode(
                x=x, y=y, order=alt.Order(field="@cost", type="quantitative")
            ),
            base.transform_filter("isValid(datum.low)")
            .mark_rule(opacity=0.5)
            .encode(x=x, y=alt.Y("bottom:Q", title="@metric"), y2="high:Q"),
            base.mark_point(filled=True, size=90)
            .properties(name=MARKS)
            .encode(
                x=x,
                y=y,
                opacity=alt.condition("datum.control || datum.pale", alt.value(0.3), alt.value(0.95)),
                color=_family(),
                shape=_shape(),
                href="href:N",
                tooltip=_tips("model", "mean", "low", "high", "@cost"),
            ),
            _found(base).mark_point(size=330, strokeWidth=2.5, tooltip=None).encode(x=x, y=y),
            _names(base).encode(x=x, y=y),
        ),
        height=430,
    )


def lengths() -> dict[str, Any]:
    """The score by length, a line for each cell, one of them stressed; the range of training is shaded."""
    alt = altair()
    base = _base().transform_filter("isValid(datum.mean)")
    x = alt.X(
        "length:Q",
        scale=alt.Scale(type="log", base=2),
        title="length in the test",
        axis=alt.Axis(values=alt.ExprRef("@ticks"), grid=False),
    )
    y = alt.Y("mean:Q", scale=alt.Scale(type="linear", zero=False, nice=False, padding=14), title="@metric")
    found = _found(base)
    trained = _base().transform_aggregate(least="min(least)", most="max(most)").mark_rect(opacity=0.09, tooltip=None)
    return _spec(
        alt.layer(
            trained.encode(x=alt.X("least:Q", title="length in the test"), x2="most:Q"),
            _base()
            .mark_line(color="gray", strokeDash=[2, 3], strokeWidth=1, tooltip=None)
            .encode(x=x, y=alt.Y("mean(trivial):Q", title="@metric")),
            base.mark_line(strokeWidth=1.4, opacity=0.55).encode(x=x, y=y, color=_family(), detail="model:N"),
            base.mark_point(filled=True, size=30, opacity=0.8)
            .properties(name=MARKS)
            .encode(x=x, y=y, color=_family(), href="href:N", tooltip=_tips("model", "length", "mean", "low", "high")),
            found.mark_area(opacity=0.18).encode(
                x=x, y=alt.Y("bottom:Q", title="@metric"), y2="high:Q", color=_family(), detail="model:N"
            ),
            found.mark_line(strokeWidth=4).encode(x=x, y=y, color=_family(), detail="model:N"),
            _names(base.transform_filter("datum.last"), layer=ENDS).encode(x=x, y=y),
        ),
        height=420,
    )


@cache
def seeds(models: int) -> dict[str, Any]:
    """Every seed of every cell, with the mean and the trivial predictor's line."""
    alt = altair()
    y = alt.Y("model:N", sort=alt.EncodingSortField("place", order="ascending"), title=None)
    x = alt.X("value:Q", scale=alt.Scale(type="linear", zero=False), title="@metric")
    base = _base()
    return _spec(
        alt.layer(
            base.transform_aggregate(trivial="mean(trivial)")
            .mark_rule(strokeDash=[2, 3], tooltip=None)
            .encode(x=alt.X("trivial:Q", title="@metric")),
            base.mark_tick(thickness=2, size=12).encode(
                y=y, x=alt.X("mean(value):Q", title="@metric"), color=_family(), tooltip=_tips("model", "mean(value)")
            ),
            base.mark_point(size=55, filled=True, opacity=0.6).encode(
                y=y, x=x, color=_family(), shape=_shape(), href="href:N", tooltip=_tips("model", "seed", "value")
            ),
        ),
        height=max(17 * models, 70),
    )


@cache
def pairs(rows: int) -> dict[str, Any]:
    """Published numbers beside ours, with the interval in which one published result is expected."""
    alt = altair()
    y = alt.Y("row:N", sort=alt.EncodingSortField("place", order="ascending"), title=None)
    x = alt.X("published:Q", scale=alt.Scale(type="linear", zero=False), title="@column")
    base = _base()
    return _spec(
        alt.layer(
            base.transform_filter("isValid(datum.low)")
            .mark_rule(opacity=0.6)
            .encode(y=y, x=alt.X("low:Q", title="@column"), x2="high:Q"),
            base.mark_tick(thickness=3, size=15).encode(y=y, x=x, tooltip=_tips("row", "published", "status")),
            base.transform_calculate(what="'ours: ' + datum.status")
            .mark_point(filled=True, size=70)
            .encode(
                y=y,
                x=alt.X("ours:Q", title="@column"),
                color=alt.Color("what:N", title=None, legend=alt.Legend(orient="top")),
                shape=alt.Shape("what:N", title=None, legend=alt.Legend(orient="top")),
                tooltip=_tips("row", "published", "ours", "low", "high", "status"),
            ),
        ),
        height=max(20 * rows, 70),
    )


@cache
def curve() -> dict[str, Any]:
    """Chart of a curve of a run over its training steps, with the trivial predictor's line."""
    alt = altair()
    x = alt.X("step:Q", title="training steps")
    y = alt.Y("value:Q", scale=alt.Scale(type="linear", zero=False), title="@curve_title")
    trivial = _base().transform_filter("isValid(datum.trivial)").transform_aggregate(trivial="mean(trivial)")
    return _spec(
        alt.layer(
            trivial.mark_rule(strokeDash=[2, 3], tooltip=None).encode(y=alt.Y("trivial:Q", title="@curve_title")),
            _base().mark_line(point=True, strokeWidth=1.8).encode(x=x, y=y, tooltip=_tips("step", "value")),
        ),
        height=260,
    )


@cache
def standing(cases: int) -> dict[str, Any]:
    """The place of one cell among all, case by case; 0 is the trivial predictor and 1 is perfect."""
    alt = altair()
    y = alt.Y("case:N", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    x = alt.X("normalised:Q", title="normalised score")
    mine = _base().transform_filter("datum.own")
    return _spec(
        alt.layer(
            _base()
            .mark_tick(thickness=1, size=16, opacity=0.6)
            .encode(y=y, x=x, href="href:N", tooltip=_tips("model", "normalised")),
            mine.mark_point(filled=True, size=130)
            .properties(name=MARKS)
            .encode(y=y, x=x, color=_family(), tooltip=_tips("model", "normalised")),
            _names(mine.transform_filter("datum.variant != ''"), "variant").encode(y=y, x=x),
        ),
        height=max(34 * cases, 60),
    )


def phases() -> dict[str, Any]:
    """The eigenvalues of a trained recurrent matrix in the complex plane, with the unit circle."""
    alt = altair()
    scale = alt.Scale(zero=False)  # the unit circle is always inside
    circle = (
        alt.Chart(alt.InlineData(values=[{}]))
        .transform_calculate(turns="sequence(0, 6.3, 0.05)")
        .transform_flatten(["turns"])
        .transform_calculate(re="cos(datum.turns)", im="sin(datum.turns)")
        .mark_line(color="gray", opacity=0.4, strokeWidth=1, tooltip=None)
        .encode(x=alt.X("re:Q", scale=scale), y=alt.Y("im:Q", scale=scale), order="turns:Q")
    )
    points = (
        _base()
        .mark_point(filled=True, size=24, opacity=0.8)
        .encode(
            x=alt.X("re:Q", scale=scale, title="real part"),
            y=alt.Y("im:Q", scale=scale, title="imaginary part"),
            tooltip=_tips("modulus", "phase"),
        )
    )
    return _spec(alt.layer(circle, points), height=320, width=320)


def _base() -> Any:
    alt = altair()
    return alt.Chart(alt.NamedData("shown"))


def _found(chart: Any) -> Any:
    return chart.transform_filter("datum.found")


def _names(chart: Any, key: str = "model", layer: str = NAMES) -> Any:
    """Names beside marks; the script of the page sets them where there is room, those of most `weight` first."""
    return chart.mark_text(fontSize=PLACED, tooltip=None).encode(text=f"{key}:N").properties(name=layer)


def _family() -> Any:
    alt = altair()
    legend = alt.Legend(orient="top", title=None)
    return alt.Color("family:N", scale=alt.Scale(domain=list(FAMILIES[:3])), legend=legend)


def _shape() -> Any:
    alt = altair()
    return alt.Shape(
        "family:N", scale=alt.Scale(domain=list(FAMILIES[:3])), legend=alt.Legend(orient="top", title=None)
    )


def _tips(*names: str) -> list[Any]:
    alt = altair()
    return [
        alt.Tooltip(field=name, title="@cost_title", format=",.4~g", type="quantitative")
        if name == "@cost"
        else alt.Tooltip(name, format=",.4~g", type="quantitative")
        if name
        in ("mean", "low", "high", "value", "mean(value)", "published", "ours", "normalised", "modulus", "phase")
        else alt.Tooltip(name, type="nominal")
        for name in names
    ]


def _spec(chart: Any, height: Any, width: int | None = None) -> dict[str, Any]:
    """Specification of a chart; the script of the page gives it the width of its place where it has none."""
    alt = altair()
    sized = chart.properties(height=height, **({} if width is None else {"width": width}))
    found = sized.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding")).to_dict(validate=True)
    del found["$schema"], found["config"]
    return found
