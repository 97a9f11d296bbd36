"""A model as a page that translates or continues texts, in its reader's browser:
`python -m explorer live --model DIR --output live.html`."""

from transformer.commands.program import OutputFile
from transformer.storage.files import write_atomically, write_together


def live(
    texts: tuple[str, ...] = (), *, model: str, output: OutputFile, folder: bool = False
) -> int:
    """Write a page in which a model translates, or continues texts, in its reader's browser.

    texts [TEXT]: sentences to start from; the first opens
    model [DIR]: directory of a model, or a GGUF file
    output [PATH]: the page
    folder: write a folder for a web space: index.html, and the model's files beside it
    """
    from explorer.linked.live.carried import content_of
    from explorer.linked.live.page import INDEX, live_files

    files = live_files(model, texts, folder=folder)
    page = content_of(files[INDEX])
    if folder:
        output.mkdir(exist_ok=True)
        write_together(output, files)
    else:
        write_atomically(output, page)
    print(f"{output}: {len(page) / 1e6:.1f} MB{', and the model beside it' * folder}")
    return 0
