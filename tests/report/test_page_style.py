"""The report's colours can be told from what they stand on, in light and in dark (WCAG 2.1, contrast of 4.5 to 1)."""

import re
from pathlib import Path

import pytest

from report import page

STYLE = (Path(page.__file__).parent / "style.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
)
VERDICTS = [name.removesuffix("-ink") for name in LIGHT if name.endswith("-ink")]
PAIRS = [(f"{name}-ink", name) for name in VERDICTS]
PAIRS += [(text, ground) for text in ("ink", "dim", "link") for ground in ("paper", "card")]


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_of_known_colours():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colours", (LIGHT, DARK), ids=("light", "dark"))
def test_every_text_can_be_read_on_its_ground(colours):
    assert len(VERDICTS) == 5 and colours.keys() == LIGHT.keys()
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in PAIRS}
    assert {pair: value for pair, value in found.items() if value < 4.5} == {}


def test_no_colour_is_said_outside_the_variables():
    rest = re.sub(r":root \{.*?\}", "", STYLE, flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b", rest)) == {"#ffffff"}  # the light card that figures lie on
    assert set(re.findall(r"var\(--([a-z-]+)\)", STYLE)) - {"models"} <= LIGHT.keys()
