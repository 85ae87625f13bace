"""Draw one figure of a model: from records to figures/MODEL/NAME.png and NAME.pdf.

A figure that is the same to the eye as its file is not written again. Another processor gives other
last digits, and so another shade of a few pixels.
"""

import io
import textwrap
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure
from PIL import Image

from analysis import drawing
from analysis.results import Results
from core import files
from figures.kit import style

SAME = 2  # of 255: a smaller difference in any channel of any pixel is none to the eye
DPI = 200
# Without a date or a program's version, so that the same records give the same files.
_METADATA = {"pdf": {"CreationDate": None}, "png": {"Software": None}}


def draw(name: str, measured: Results) -> drawing.Drawn:
    """Write figures/MODEL/NAME.png and NAME.pdf."""
    written = save(figure(name, measured), drawing.place("figures", name, measured))
    title, reading = drawing.caption(name)
    return written, textwrap.fill(f"{measured.title}, {title} {reading}", 100)


def figure(name: str, measured: Results) -> Figure:
    """A figure of a model, which says of which model it is and what it shows.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: no figure of that name.
    """
    style.use()
    drawn = drawing.function("figures", name)(measured)
    title, _ = drawing.caption(name)
    style.title(drawn, f"{measured.title}: {style.plain_title(title)}")
    if measured.is_quick:
        drawn.text(0.99, 0.01, "a sketch", ha="right", va="bottom", color="#BB0000")
    return drawn


def save(figure: Figure, path: Path) -> list[Path]:
    """Write PATH.pdf and PATH.png, unless both are there and the picture is the same to the eye.

    Args:
        path: without the suffix.

    Returns:
        both files.
    """
    if layout := figure.get_layout_engine():
        figure.dpi = DPI  # names take other room at another resolution
        layout.execute(figure)
    png, pdf = (path.with_name(f"{path.name}.{suffix}") for suffix in ("png", "pdf"))
    picture = _drawn(figure, "png")
    if not (pdf.is_file() and png.is_file() and is_same(picture, png.read_bytes())):
        files.write(pdf, _drawn(figure, "pdf"))
        files.write(png, picture)  # last: where it is the same, so is the other
    pyplot.close(figure)
    return [pdf, png]


def _drawn(figure: Figure, suffix: str) -> bytes:
    drawn = io.BytesIO()
    with pyplot.rc_context({"figure.constrained_layout.use": False}):  # it has been laid out
        figure.set_layout_engine(None)
        figure.savefig(drawn, format=suffix, dpi=DPI, metadata=_METADATA[suffix])
    return drawn.getvalue()


def is_same(picture: bytes, there: bytes) -> bool:
    """Whether two PNG files show the same to the eye; what cannot be decoded shows nothing."""
    try:
        before = _pixels(there)
    except (OSError, SyntaxError, ValueError):  # what a broken file raises, by where it breaks
        return False
    now = _pixels(picture)
    return now.shape == before.shape and int(np.abs(now - before).max()) <= SAME


def _pixels(png: bytes) -> np.ndarray:
    """Integers from 0 to 255, [rows, columns, channels]."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA")).astype(np.int16)
