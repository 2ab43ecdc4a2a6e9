"""The style of all pictures, with colours that colour-blind people can tell apart, sizes for a phone, and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from io import StringIO
from math import floor, isfinite, log10
from pathlib import Path
from textwrap import fill
from typing import Any

from plumdp.base.errors import DataError
from plumdp.result.printing import outward

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
"""Okabe and Ito's colours, which people who are colour-blind can tell apart."""
GREY, PALE = "#767676", "#d9d9d9"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")  # for more colours than there are

PHONE = 4.2  # inches: at 390 pixels, nine points are then twelve pixels
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.facecolor": "white",
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "figure.facecolor": "white",  # a panel of its own, also on a dark page
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "hatch.linewidth": 0.6,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"],
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "plumdp",  # the same picture is the same file
}
_FORMATS = (".png", ".svg", ".pdf")
DOTS = 200  # per inch, of PNG


@contextmanager
def styled() -> Iterator[None]:
    """Draw what follows in the style of all pictures."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        yield


def new_figure(width: float = PHONE, height: float = 3.0) -> Any:
    """Return an empty figure of matplotlib whose parts never overlap, with its size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axes_in(axes: Any, width: float, height: float) -> Any:
    """Return the axes that somebody gave, or those of a new figure of this size."""
    return new_figure(width, height).add_subplot() if axes is None else axes


def require_format(path: Path) -> str:
    """Return the ending of a picture's name, or refuse an unknown one."""
    kind = path.suffix.lower()
    if kind not in _FORMATS:
        raise DataError(f"{path}: pictures are written as {', '.join(_FORMATS)}; let the name end in one of these")
    return kind


def svg_of(figure: Any, *, label: str = "") -> str:
    """Return a figure as an svg element as wide as its place on a page, with texts as text and names of its own.

    ``label`` says what the picture shows, for those who do not see it.
    """
    file = StringIO()
    with styled():
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _own_names(_flexible(file.getvalue(), label))


def _flexible(document: str, label: str) -> str:
    """Return the svg element of a document, without prologue, metadata and fixed size."""
    from html import escape

    start = document.index("<svg")
    head, body = document[start:].split(">", 1)
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    width = float(re.search(r'width="([\d.]+)pt"', head).group(1))  # type: ignore[union-attr]
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    look = f'style="width:100%;height:auto;max-width:{width * 1.9:.0f}px"'
    name = f' aria-label="{escape(label)}"' if label else ""
    return f'{head} role="img"{name} {look}>{body}'


def _own_names(element: str) -> str:
    """Return an svg element with unique ids, which begin with a hash of the picture."""
    prefix = f"f{blake2b(element.encode(), digest_size=5).hexdigest()}-"
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", element)


def bound_text(value: float, side: int, digits: int = 4) -> str:
    """Return a bound for a picture, rounded down (side -1) or up (side 1)."""
    if not isfinite(value):
        return "no bound"
    text = outward(value, side, digits)
    return f"{int(text):,}" if text.lstrip("-").isdigit() else text


def number_text(value: float, digits: int = 4) -> str:
    """Return a number that is not a bound, without powers of ten if they can be avoided.

    >>> number_text(0.30004), number_text(12345678.0), number_text(2.5e-9)
    ('0.3', '12,345,678', '2.5e-9')
    """
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    size = floor(log10(abs(value)))
    if not -6 <= size < 12:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_ticks(axis: Any, *, is_log: bool = False, most: int = 6) -> None:
    """Let an axis have plain ticks, without powers of ten or offsets, about ``most`` on a logarithmic one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: short_text(value) if is_log else _tick_text(axis, value)))
    if is_log:
        axis.set_major_locator(LogLocator(numticks=most))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: _between_decades(axis, value)))
    else:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))


def _tick_text(axis: Any, value: float) -> str:
    """Return the text of a tick, with as many digits as tell it from its neighbours."""
    low, high = axis.get_view_interval()
    width, size = high - low, max(abs(low), abs(high))
    return number_text(value, max(4, 3 + floor(log10(size / width))) if width > 0 else 4)


def _between_decades(axis: Any, value: float) -> str:
    """Return the text of a tick at 2, 3 or 5 times a power of ten, if the axis shows less than a decade."""
    low, high = axis.get_view_interval()
    leading = round(value / 10 ** floor(log10(value)))
    return short_text(value) if high < 10 * low and leading in (2, 3, 5) else ""


def short_text(value: float) -> str:
    """Return a round number in few characters.

    >>> short_text(1000.0), short_text(2.5e6), short_text(0.01)
    ('1,000', '2.5 million', '0.01')
    """
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{number_text(value / size)} {name}"
    return number_text(value)


def legend_below(axes: Any, handles: Sequence[Any], *, columns: int = 2, at: float = 0.5) -> None:
    """Put a legend below axes, its right end under theirs and ``at`` inches away, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    if handles:
        below = axes.transAxes + ScaledTranslation(0, -at, axes.figure.dpi_scale_trans)
        place = {"loc": "upper right", "bbox_to_anchor": (1, 0), "bbox_transform": below, "borderaxespad": 0}
        axes.legend(handles=list(handles), ncols=min(columns, len(handles)), **place)


def heading(figure: Any, *sentences: str) -> None:
    """Put sentences above all panels, those that are not empty."""
    shown = [fill(sentence, 56) for sentence in sentences if sentence]
    if shown:
        figure.suptitle("\n".join(shown), fontsize=8.5, x=0.01, ha="left")


def mark(label: str, colour: str, marker: str = "", *, line: Any = "none", width: float = 1.4, face: str = "") -> Any:
    """Return a mark or line for a legend."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line, "linewidth": width, "markersize": 5}
    return Line2D([], [], label=label, markerfacecolor=face or colour, **look)


def patch(label: str, colour: str, *, edge: str = "none", hatch: str = "", alpha: float = 1.0) -> Any:
    """Return a filled rectangle for a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=edge, hatch=hatch, alpha=alpha, label=label)
