"""Charts of the race, as SVG, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from table import number

Points = tuple[Sequence[float], Sequence[float]]
SHADES = {True: ("#1f4e79", "#4f81b4"), False: ("#9d9d9d", "#cccccc")}
"""Whether it is the reference → the colours of the series."""


def bars(
    file: Path, title: str, unit: str, series: Mapping[str, Mapping[str, float]], logarithmic: bool = False
) -> None:
    """Write a group of bars for each name, one for each series; those of the reference are blue.

    Args:
        file: the file to write.
        title: the title above the chart.
        unit: the unit of the axis.
        series: series → name → length; the first series has all names, and zeros are left out.
        logarithmic: whether the axis is logarithmic.
    """
    names = [name for name, value in next(iter(series.values())).items() if value][::-1]
    figure, axes = _figure((0.15 + 0.17 * len(series)) * len(names) + 1.0)
    thickness = 0.8 / len(series)
    for place, (title_of, values) in enumerate(series.items()):
        heights = [index - place * thickness for index in range(len(names))]
        colours = [SHADES[_is_ours(name)][place] for name in names]
        lengths = [values[name] for name in names]
        drawn = axes.barh(heights, lengths, thickness, color=colours)
        axes.bar_label(drawn, labels=[f"{number(length)} {title_of}" for length in lengths], padding=3, fontsize=8)
    axes.set_yticks([index - thickness * (len(series) - 1) / 2 for index in range(len(names))], names)
    axes.set(title=title, xlabel=unit, xscale="log" if logarithmic else "linear")
    axes.margins(x=0.22, y=0.01)
    _write(figure, file)


def lines(file: Path, title: str, series: Mapping[str, Points], x: str, y: str) -> None:
    """Write a chart with logarithmic axes and a line for each series.

    Args:
        file: the file to write.
        title: the title above the chart.
        series: name → (x values, y values).
        x: the label of the horizontal axis.
        y: the label of the vertical axis.
    """
    figure, axes = _figure(3.6)
    for name, (xs, ys) in series.items():
        axes.plot(xs, ys, marker="o", linewidth=2.2 if _is_ours(name) else 1.2, label=name)
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    _write(figure, file)


def _is_ours(name: str) -> bool:
    return name.startswith(("ours", "the reference"))


def _figure(height: float) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "race", "font.size": 9})
    return pyplot.subplots(figsize=(7.0, height))


def _write(figure: Any, file: Path) -> None:
    figure.tight_layout()
    temporary = file.with_name(file.name + ".tmp")
    figure.savefig(temporary, format="svg", metadata={"Date": None})
    temporary.replace(file)
