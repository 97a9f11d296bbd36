"""What is measured: `python -m benchmarks NAME`; docs/measured.md has the figures. No test measures
time."""

import sys
from importlib import import_module

from transformer.commands.program import Commands, run_program

NAMES = {
    "package": "capture words changes tree scoring layouts measures growth left_out",
    "texts": "hostile",
    "families": "families peaks",
    "decoders": "decoders",
    "opening": "opening",
    "masked": "masked",
    "training": "training",
    "app": "app inside age long files",
    "train_here": "train_here beside_training",
    "visitors": "load redraws soak",
    "pages": "living translating",
    "looks": "screenshots firefox",
    "motion": "picture",
    "doubt": "doubt",
}
"""The commands of each file."""


def _commands() -> Commands:
    wanted = sys.argv[1].replace("-", "_") if sys.argv[1:] else ""  # only its file is loaded
    files = [file for file, names in NAMES.items() if wanted in names.split()] or list(NAMES)
    commands = [(file, name) for file in files for name in NAMES[file].split()]
    return {
        name.replace("_", "-"): getattr(import_module(f"benchmarks.{file}"), name)
        for file, name in commands
    }


if __name__ == "__main__":
    sys.exit(run_program("python -m benchmarks", __doc__, _commands))
