"""A model as a page that translates: `python -m explorer live --model DIR --output live.html`."""

from pathlib import Path

from transformer.commands.program import OutputFile
from transformer.storage.files import write_atomically, write_together


def live(
    texts: tuple[str, ...] = (), *, model: str, output: OutputFile, folder: bool = False
) -> int:
    """Write a page in which a model translates in its reader's browser.

    texts [TEXT]: sentences to start from; the first opens
    model [DIR]: directory of a model of this package
    output [PATH]: the page
    folder: write a folder for a web space: index.html, and the model's files beside it
    """
    from explorer.linked.live.page import PIECES, WEIGHTS
    from explorer.linked.live.page import live as written

    page = written(model, texts, folder=folder).encode()
    if folder:
        output.mkdir(exist_ok=True)
        beside = {name: Path(model) / name for name in (WEIGHTS, PIECES)}
        write_together(output, {"index.html": page, **beside})
    else:
        write_atomically(output, page)
    print(f"{output}: {len(page) / 1e6:.1f} MB{', and the model beside it' * folder}")
    return 0
