"""Draw one figure of a model: from records to figures/MODEL/NAME.png and NAME.pdf.

A figure that is the same to the eye as its file is not written again. Another processor gives other
last digits, and so another shade of a few pixels.
"""

import io
import re
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
    caption = " ".join(drawing.caption(name))
    return written, textwrap.fill(f"{measured.title}, {caption}", 100)


def figure(name: str, measured: Results) -> Figure:
    """A figure of a model, which says of which model it is and what it shows.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: no figure of that name.
    """
    style.use()
    drawn = drawing.function("figures", name)(measured)
    title, _ = drawing.caption(name)
    # without the number that the figure has in the paper
    plain = re.sub(r"^Figure \d+: ", "", title).rstrip(".")
    style.title(drawn, f"{measured.title}: {plain[:1].upper()}{plain[1:]}")
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
    pdf, png = path.with_suffix(".pdf"), path.with_suffix(".png")
    with pyplot.rc_context({"figure.constrained_layout.use": False}):  # it has been laid out
        figure.set_layout_engine(None)
        figure.canvas.draw()
        picture = np.asarray(figure.canvas.buffer_rgba())
        if not (pdf.is_file() and png.is_file() and is_same(picture, png.read_bytes())):
            files.write(pdf, _file(figure, "pdf"))
            files.write(png, _file(figure, "png"))  # last: where it is the same, so is the other
    pyplot.close(figure)
    return [pdf, png]


def _file(figure: Figure, suffix: str) -> bytes:
    drawn = io.BytesIO()
    figure.savefig(drawn, format=suffix, dpi=DPI, metadata=_METADATA[suffix])
    return drawn.getvalue()


def is_same(picture: np.ndarray, there: bytes) -> bool:
    """Whether a picture, as :func:`pixels`, and a PNG file show the same to the eye; a file that
    cannot be decoded shows nothing."""
    try:
        before = pixels(there)
    except (OSError, SyntaxError, ValueError):  # what a broken file raises, by where it breaks
        return False
    return picture.shape == before.shape and np.allclose(picture, before, rtol=0, atol=SAME)


def pixels(png: bytes) -> np.ndarray:
    """uint8 [rows, columns, channels] of a PNG file."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
