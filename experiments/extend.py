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

from pathlib import Path

import numpy as np

from core import discovery, files, rope
from core.angles import angle_distribution
from core.disturbance import disturbance, strategy_disturbance
from core.errors import InputError
from core.rope import RopeGeometry, RopeScaling, scale
from core.setting import Setting
from experiments import base_models
from experiments.kit import command_line


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

    # with torch, which --help does without
    from core import extend as extension
    from core.huggingface import card, configuration, embedding, rotation
    from experiments.kit import loading
    from experiments.kit import model as models

    base = models.resolve(arguments.model)
    geometry = embedding.rope_geometry(rotation.skeleton(base.config))
    in_memory = base.source.gguf_file or rope.get(method).start
    scaling = scale(geometry, method, factor, **options)
    if arguments.output and in_memory:
        model = extension.extend(base.load(), method, factor, **options)
        extension.export(model, arguments.output, loading.stock_tokenizer(base.source))
    elif arguments.output:
        source = base.source.snapshot()
        extension.extend_checkpoint(source, arguments.output, method, factor, **options)
    if arguments.output:
        print(f"written: {arguments.output}, whose README.md says how to load and serve it\n")
    length = f"L = {geometry.context_length:,} tokens"
    if hasattr(configuration.text_config(base.config), configuration.EXTENSION):
        print(f"note: it was extended before; this starts anew from its first {length}.")
    if geometry.frequencies is not None:
        print(f"note: its RoPE, which reaches {length}, was {card.before(geometry.rope_type)}.")
    print(setting)
    counted = {name: options[name] for name in options.keys() & {"intervals", "convention"}}
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
    divisors = geometry.inv_freq / scaling.inv_freq
    choices = [_choice(divisor, factor) for divisor in divisors]
    columns = zip(geometry.wavelength, 1e3 * interpolation, 1e3 * extrapolation, choices)
    pairs = [
        f"{i:>4}  {wavelength:>12,.1f}  {moved:>10.4f}  {kept:>10.4f}  {choice}"
        for i, (wavelength, moved, kept, choice) in enumerate(columns)
    ]
    count = 2 * scaling.interpolated.sum()
    between = 2 * sum(choice not in ("keep", "interpolate") for choice in choices)
    others = f", {between} divided by other numbers" if between else ""
    return "\n".join(
        [
            f"{'pair':>4}  {'wavelength':>12}  {'D_I':>10}  {'D_E':>10}  choice",
            *pairs,
            "D_I, D_E: the disturbance of interpolating the pair by s, and of keeping it, in 10^-3 "
            "nat.",
            f"\ncontext {length:,} → {longer:,} tokens (s = {factor:g}), "
            f"{count} of {geometry.head_dim} dimensions interpolated by s{others}",
            f"averaged disturbance ({convention} convention, 10^-3 nat): {1e3 * result.mean():.2f} "
            f"(interpolating all: {1e3 * interpolation.mean():.2f}, extrapolating all: "
            f"{1e3 * extrapolation.mean():.2f})",
        ]
    )


def _choice(divisor: float, factor: float) -> str:
    if np.isclose(divisor, 1):
        return "keep"
    divided = f"divide by {divisor:.3f}" if divisor < 1e6 else "stop"
    return "interpolate" if np.isclose(divisor, factor) else divided


if __name__ == "__main__":
    command_line.run(main)
