"""Charts of the race, as SVG, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from table import number

Points = tuple[Sequence[float], Sequence[float]]


def bars(file: Path, title: str, unit: str, values: Mapping[str, float], logarithmic: bool = False) -> None:
    """Write one bar for each value; those of the reference are dark.

    Args:
        file: the file to write.
        title: the title above the chart.
        unit: the unit of the axis.
        values: name → length; zeros are left out.
        logarithmic: whether the axis is logarithmic.
    """
    figure, axes = _figure(1, 0.4 * len(values) + 1.2)
    shown = {name: value for name, value in values.items() if value}
    names = list(reversed(shown))
    colours = ["#1f4e79" if _is_ours(name) else "#9db8d2" for name in names]
    drawn = axes[0].barh(names, [shown[name] for name in names], color=colours)
    axes[0].bar_label(drawn, labels=[number(shown[name]) for name in names], padding=3)
    axes[0].set(title=title, xlabel=unit, xscale="log" if logarithmic else "linear")
    axes[0].margins(x=0.15)
    _write(figure, file)


def lines(file: Path, panels: Mapping[str, Mapping[str, Points]], x: str, y: str) -> None:
    """Write panels side by side with logarithmic axes and a line for each series.

    Args:
        file: the file to write.
        panels: title → series → (x values, y values).
        x: the label of the horizontal axis.
        y: the label of the vertical axis.
    """
    figure, axes = _figure(len(panels), 3.6)
    for axis, (title, series) in zip(axes, panels.items(), strict=True):
        for name, (xs, ys) in series.items():
            axis.plot(xs, ys, marker="o", linewidth=2.2 if _is_ours(name) else 1.2, label=name)
        axis.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    _write(figure, file)


def _is_ours(name: str) -> bool:
    return name.startswith(("ours", "the reference"))


def _figure(columns: int, height: float) -> tuple[Any, Sequence[Any]]:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "race", "font.size": 9})
    figure, axes = pyplot.subplots(1, columns, figsize=(max(7.0, 3.4 * columns), height), squeeze=False)
    return figure, list(axes[0])


def _write(figure: Any, file: Path) -> None:
    figure.tight_layout()
    temporary = file.with_name(file.name + ".tmp")
    figure.savefig(temporary, format="svg", metadata={"Date": None})
    temporary.replace(file)
    print(f"chart: {file}")
