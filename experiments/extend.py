"""Extend your own model without training, and write it as a stock Hugging Face checkpoint.

    python -m experiments.extend --model PATH_OR_NAME --method yarn --factor 2 --output DIR

It prints the decision for every dimension pair with its wavelength in tokens, and the averaged
disturbance. Plain AutoModelForCausalLM.from_pretrained(DIR) loads the result. Without --output
nothing is exported, and the last lines say how engines serve the checkpoint's own files as
extended, without a copy. `python -m experiments.beyond.best` says whether to extend a model, and by
which method.

The weights of a checkpoint are copied byte for byte and never read. A GGUF file stays a GGUF file,
quantised or not (--model FILE.gguf --output NEW.gguf). The model is loaded only if there is no
checkpoint to copy, or if the method is learned. `hf upload NAME DIR` brings the result to the hub.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core import discovery, files, rope
from core.angles import angle_distribution
from core.discovery import later
from core.disturbance import disturbance, strategy_disturbance
from core.errors import InputError
from core.rope import RopeGeometry, RopeScaling, scale
from core.setting import Setting
from experiments import base_models
from experiments.kit import command_line

if TYPE_CHECKING:
    from core import extend as extension
    from core.huggingface import card, configuration, embedding, rotation
    from experiments.kit import loading
    from experiments.kit import model as models
else:
    extension, card, configuration, embedding, rotation, loading, models = later(
        "core.extend",
        "core.huggingface.card",
        "core.huggingface.configuration",
        "core.huggingface.embedding",
        "core.huggingface.rotation",
        "experiments.kit.loading",
        "experiments.kit.model",
    )


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.extend")
    base_models.add_argument(parser, required=True)
    command_line.add_method_arguments(parser)
    output = "write the extended model here; must not exist"
    command_line.option(parser, "--output", command_line.directory, "DIR", output)
    arguments = parser.parse_args()
    method = arguments.method
    factor = arguments.factor
    options = rope.changed_options(method, command_line.given_options(arguments))
    setting = f"{Setting.make(method, options).name}, s = {factor:g}"
    if arguments.output:
        rope.check_fixed(method)
        files.check_new(arguments.output)
    if arguments.model.lower().endswith(".gguf"):
        written = extended_gguf(arguments, method, factor, **options)
        print(f"written: {written}\n{setting}")
        return
    base = models.resolve(arguments.model)
    geometry = embedding.config_geometry(base.config)
    in_memory = base.source.gguf_file or rope.get(method).start
    source = base.source.snapshot() if arguments.output and not in_memory else None
    if source:
        extension.check_checkpoint(source, arguments.output)
    counted = {name: options[name] for name in options.keys() & {"intervals", "convention"}}
    scaling = scale(geometry, method, factor, **options)
    if source:
        extension.extend_checkpoint(source, arguments.output, method, factor, **options)
    elif arguments.output:
        model = extension.extend(base.load(), method, factor, **options)
        extension.export(model, arguments.output, loading.stock_tokenizer(base.source))
    if arguments.output:
        print(f"written: {arguments.output}, whose README.md says how to load and serve it\n")
    length = f"L = {geometry.context_length:,} tokens"
    if hasattr(configuration.text_config(base.config), configuration.EXTENSION):
        print(f"note: it was extended before; this starts anew from its first {length}.")
    if geometry.frequencies is not None:
        print(f"note: its RoPE, which reaches {length}, was {card.before(geometry.rope_type)}.")
    print(setting)
    print(decision_table(geometry, scaling, factor, **counted))
    if not (arguments.output or in_memory or rope.get(method).by_length):
        skeleton = rotation.skeleton(base.config)
        extended = extension.extend(skeleton, method, factor, **options).config
        place = base.source.place
        print("", "without a copy:", card.commands(place, base.config, extended), sep="\n")


def extended_gguf(arguments, method: str, factor: float, **options) -> Path:
    """Write the GGUF file --output."""
    if not Path(arguments.model).is_file():
        raise InputError(
            f"no GGUF file at {arguments.model!r}; give one, or the directory of a checkpoint."
        )
    gguf_file = discovery.module("core.beyond.gguf_file")
    if gguf_file is None:
        raise InputError(
            "GGUF files are extended by core/beyond/gguf_file.py, which is not here; give a "
            "checkpoint."
        )
    if not arguments.output:
        raise InputError("a GGUF file is written to a file of its own; give --output NEW.gguf.")
    return gguf_file.extend_gguf(arguments.model, arguments.output, method, factor, **options)


def decision_table(
    geometry: RopeGeometry,
    scaling: RopeScaling,
    factor: float,
    intervals: int = 360,
    convention: str = "released",
) -> str:
    """The per-pair decision and the averaged disturbance, as text for a terminal."""
    length = geometry.context_length
    longer = round(length * factor)
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, length, factor, intervals, convention
    )
    result = disturbance(
        angle_distribution(scaling.inv_freq, longer, intervals),
        angle_distribution(geometry.inv_freq, length, intervals),
        convention,
    )
    lines = [f"{'pair':>4}  {'wavelength':>12}  {'D_I':>10}  {'D_E':>10}  choice"]
    divisors = geometry.inv_freq / scaling.inv_freq
    lines += [
        f"{i:>4}  {geometry.wavelength[i]:>12,.1f}  {interpolation[i] * 1e3:>10.4f}  "
        f"{extrapolation[i] * 1e3:>10.4f}  {_choice(divisors[i], factor)}"
        for i in range(geometry.pairs)
    ]
    lines.append(
        "D_I, D_E: the disturbance of interpolating the pair by s, and of keeping it, in 10^-3 nat."
    )
    count = 2 * int(np.sum(scaling.interpolated))
    between = 2 * int(np.sum(~np.isclose(divisors, 1) & ~np.isclose(divisors, factor)))
    others = f", {between} divided by other numbers" if between else ""
    lines.append(
        f"\ncontext {length:,} → {longer:,} tokens (s = {factor:g}), "
        f"{count} of {geometry.head_dim} dimensions interpolated by s{others}"
    )
    lines.append(
        f"averaged disturbance ({convention} convention, 10^-3 nat): {1e3 * result.mean():.2f} "
        f"(interpolating all: {1e3 * interpolation.mean():.2f}, extrapolating all: "
        f"{1e3 * extrapolation.mean():.2f})"
    )
    return "\n".join(lines)


def _choice(divisor: float, factor: float) -> str:
    if np.isclose(divisor, 1):
        return "keep"
    divided = f"divide by {divisor:.3f}" if divisor < 1e6 else "stop"
    return "interpolate" if np.isclose(divisor, factor) else divided


if __name__ == "__main__":
    command_line.run(main)
