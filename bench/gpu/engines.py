"""RULER and passkey on SmolLM2 by transformers and by vLLM (bench.engines), if vLLM is installed."""

from __future__ import annotations

import sys

import bench.engines
from bench.gpu import kit
from experiments.lab import cli, engines


def main() -> None:
    part, _ = kit.start(__doc__)
    if not (engines.ENVIRONMENTS / engines.OTHER / "bin" / "python").is_file():
        part.add("both engines", "not installed: make env-serving", "", engines.OTHER)
        return
    scale, dtype, samples = ("tiny", "float32", "1") if part.toy else ("smollm2", "bfloat16", "4")
    sys.argv = ["bench.engines", "--scale", scale, "--dtype", dtype, "--samples", samples]
    sys.argv += ["--benchmarks", "ruler", "passkey", "--output", str(part.output)]
    bench.engines.main()


if __name__ == "__main__":
    cli.run(main)
