"""A stand-in for a fine-tune: called the first time, it writes a checkpoint and waits; then it goes on and is done.

python -m tests.experiments.beyond.goes_on --output DIR …
"""

import sys
import time
from pathlib import Path

output = Path(sys.argv[sys.argv.index("--output") + 1])
manifest = Path(f"{output}.unfinished") / "checkpoint-1" / "manifest.json"  # see experiments.training.checkpoint
if not manifest.is_file():
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    time.sleep(60)
print("went on from 1")
output.mkdir()
