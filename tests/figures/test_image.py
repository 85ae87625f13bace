"""What is the same to the eye as the file that is there stays, and all else is written."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from figures.kit import image


def save(path):
    figure, axes = plt.subplots(figsize=(1, 1), layout="constrained")
    axes.plot([0, 1])
    return image.save(figure, path)


def changed(png, by):
    """The picture whose darkest pixel has one other channel."""
    pixels = np.asarray(Image.open(png)).copy()
    pixels[np.unravel_index(pixels[..., 0].argmin(), pixels.shape[:2])][0] += by
    return encoded(pixels)


def encoded(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


THERE = {
    "a pixel that differs by 1": (lambda png: changed(png, 1), True),
    "by 2": (lambda png: changed(png, 2), True),
    "by 3": (lambda png: changed(png, 3), False),
    "another size": (lambda png: encoded(np.asarray(Image.open(png))[:-1]), False),
    "no picture": (lambda png: b"<svg/>", False),
    "nothing": (lambda png: b"", False),
    "the first half": (lambda png: png.read_bytes()[: png.stat().st_size // 2], False),
    "without its last pixels": (lambda png: png.read_bytes()[:-40], False),
    "a broken header": (lambda png: png.read_bytes().replace(b"IHDR", b"IHDX", 1), False),
}


@pytest.mark.parametrize("there", THERE)
def test_only_a_picture_that_differs_to_the_eye_is_written(tmp_path, there):
    content, stays = THERE[there]
    pdf, png = save(tmp_path / "drawn")
    drawn = png.read_bytes()
    before = content(png)
    png.write_bytes(before)
    pdf.write_bytes(b"an older one")
    assert save(tmp_path / "drawn") == [pdf, png]
    assert png.read_bytes() == (before if stays else drawn)
    assert (pdf.read_bytes() == b"an older one") == stays


def test_a_file_that_is_missing_is_written(tmp_path):
    pdf, png = save(tmp_path / "beyond" / "drawn")
    for missing in (pdf, png):
        content = missing.read_bytes()
        missing.unlink()
        save(tmp_path / "beyond" / "drawn")
        assert missing.read_bytes() == content


def test_a_picture_that_is_cut_off_anywhere_is_another(tmp_path):
    _, png = save(tmp_path / "drawn")
    whole = png.read_bytes()
    assert image.is_same(whole, whole)
    for length in [*range(100), *range(100, len(whole), 97), *range(len(whole) - 100, len(whole))]:
        assert not image.is_same(whole, whole[:length]), length
