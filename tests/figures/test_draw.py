"""What is the same to the eye as the file that is there stays, and all else is written."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from figures.kit import draw


def save(path):
    figure, axes = plt.subplots(figsize=(1, 1), layout="constrained")
    axes.plot([0, 1])
    return draw.save(figure, path)


def changed(png, by=0, rows=None):
    """The first rows of the picture, whose darkest pixel has one other channel."""
    pixels = np.asarray(Image.open(png)).copy()
    pixels[np.unravel_index(pixels[..., 0].argmin(), pixels.shape[:2])][0] += by
    file = io.BytesIO()
    Image.fromarray(pixels[:rows]).save(file, "png")
    return file.getvalue()


@pytest.mark.parametrize(
    "there, stays",
    [
        (lambda png: changed(png, by=2), True),
        (lambda png: changed(png, by=3), False),
        (lambda png: changed(png, rows=-1), False),
        (lambda png: b"<svg/>", False),
        (lambda png: png.read_bytes()[: png.stat().st_size // 2], False),
    ],
    ids=["differs by 2", "differs by 3", "another size", "no picture", "the first half"],
)
def test_only_a_picture_that_differs_to_the_eye_is_written(tmp_path, there, stays):
    pdf, png = save(tmp_path / "drawn")
    drawn = png.read_bytes()
    before = there(png)
    png.write_bytes(before)
    pdf.write_bytes(b"an older one")
    assert save(tmp_path / "drawn") == [pdf, png]
    assert png.read_bytes() == (before if stays else drawn)
    assert (pdf.read_bytes() == b"an older one") == stays
