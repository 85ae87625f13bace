"""Why methods fail where they do, in sentences for the report, from the records that go beyond the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments import scales
from tables import common, html, previous_token
from tables.benchmarks import STATES, comparable, over_seeds


def sentences(results: Path) -> Iterator[tuple[str, str]]:
    """(scale, sentence) for each scale, state and factor that was measured."""
    for scale, preset in scales.SCALES.items():
        for trained, state in STATES:
            heads, passkeys = (comparable(results, scale, name, trained) for name in ("previous_token", "passkey"))
            for factor in preset.factors:
                start = f"{state}, s = {factor:g}"
                if found := [f"{_name(group)} {_shares(group)}" for group in heads if group[0]["factor"] == factor]:
                    what = "heads that look k tokens back, their attention there | s·k tokens back"
                    yield scale, f"{start}: {what}: {'; '.join(found)}."
                settings = [setting for changed in preset.sharpened(factor) for setting in (_plain(changed), changed)]
                found = [
                    f"{_name(group)} {_passkeys(group, round(preset.geometry.context_length * factor))}"
                    for setting in settings
                    for group in passkeys
                    if (group[0]["method"], group[0]["options"], group[0]["factor"]) == (*setting, factor)
                ]
                if len(found) == len(settings):
                    yield scale, f"{start}: passkeys found at L', temperature apart from pairs: {'; '.join(found)}."


def _plain(setting: tuple[str, dict]) -> tuple[str, dict]:
    method, options = setting
    return method, {key: value for key, value in options.items() if key != "attention_factor"}


def _name(group: list[dict]) -> str:
    return html.text(common.method_name(group[0]))


def _shares(group: list[dict]) -> str:
    means = over_seeds([previous_token.scores(record) for record in group])
    return " | ".join(f"{score['mean']:.0f} %" for score in means.values())


def _passkeys(group: list[dict], length: int) -> str:
    rows = [row for run in group for row in run["scores"]["by_length"] if row["length"] == length]
    return f"{round(sum(row['mean'] * row['n'] for row in rows))} of {sum(row['n'] for row in rows)}"
