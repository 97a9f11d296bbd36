"""Makes `assets/first.npz`: the first example as the bundled model translates it, which a cold server draws.

    python benchmarks/first.py

A new model, or another first example, asks for a new file; a test says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> None:
    """Translates the first example, checks the run and writes the file."""
    from transformer import load_translator
    from transformer.exports.maps import save_maps
    from ui.server import catalogue, examples, first

    directory = catalogue.BUNDLED / catalogue.DEFAULT
    translation = load_translator(directory).translate(examples.examples()[0].text)
    assert translation.attention is not None
    if not translation.attention.audit().passed:
        raise SystemExit("The checks of the run fail, so it is not written.")
    save_maps(translation, directory, first.FILE)
    print(f"Wrote {first.FILE}: “{translation.source_text}” → “{translation.text}”.")


if __name__ == "__main__":
    main()
