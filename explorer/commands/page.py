"""A run as one HTML file: `python -m explorer page --model DIR "A sentence." --output run.html`."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from explorer.linked.living.index import index
from explorer.linked.living.known import Known
from explorer.linked.living.page import written
from transformer.commands.lines import line_text, name_bad, warn
from transformer.commands.models import BeamOptions, Device
from transformer.commands.program import OutputFile
from transformer.devices import AUTO
from transformer.interventions import Intervention, read_text
from transformer.reader import READS_ONLY, InputError
from transformer.run import Translation
from transformer.storage.files import write_atomically
from transformer.text.pairs import filled_lines
from transformer.translator import load_translator

Run = Callable[[str, Sequence[Intervention]], Translation]


def page(
    text: str | None = None,
    *,
    model: Path,
    file: Path | None = None,
    output: OutputFile,
    place: str = "",
    heads: str = "",
    beside: str | None = None,
    beside_model: Path | None = None,
    changes: str = "",
    measure: list[Literal["carried", "effect"]] | None = None,
    why: list[int] | None = None,
    beam: BeamOptions,
    device: Device = AUTO,
) -> int:
    """Write a run as one HTML file with every head.

    text [TEXT]: text to translate, or to continue
    model [DIR]: directory of a model, of either sort, or a GGUF file
    file: texts, one a line (.gz too)
    output [PATH]: the page; with --file a folder, which gets an index and a page for each text
    place [PLACE]: where the page opens, counted from 1: step=7&cross=3.5
    heads [HEADS]: heads that are whole in a page of more than 256 tokens: cross=3.5&cross=1.2;
        else those of
        PLACE
    beside [TEXT]: another text, whose run stands beside the first
    beside_model [DIR]: directory of another model; its run stands beside the first, of the same
        text without
        --beside
    changes [CHANGES]: changes of the run, as an address of the app has them; without --beside,
        it stands
        beside as it is
    measure: what cells can say beside the weight; effect takes a run of the model for every
        cell of a head
    why [STEP]: a step, from 1, of which the page says why its token was written
    """
    if (text is None) == (file is None):
        raise InputError("Give one text, or a file of texts with --file.")
    edits = read_text(changes)
    other_text = beside and line_text(beside)
    run, known = _opened(model, beam, device)
    run_beside = run
    known_beside = known
    if beside_model:
        run_beside, known_beside = _opened(beside_model, beam, device)

    def make(folder: str) -> tuple[Translation, str]:
        first = run(folder, edits)
        second = None
        if other_text or beside_model or edits:
            second = run_beside(other_text or folder, ()), known_beside
        html = written(
            first,
            known,
            place,
            heads,
            beside=second,
            measures=measure or (),
            why=why or (),
        )
        return first, html

    if text is None:
        assert file is not None
        return _write_all(file, output, make)
    translation, html = make(line_text(text))
    write_atomically(output, html.encode())
    print(f"{output}: {translation.text}")
    warn(translation.notes)
    return 0


def _opened(directory: Path, beam: BeamOptions, device: str) -> tuple[Run, Known]:
    """What makes the run of a text with a model, and what is known of the model."""
    model = load_translator(directory, device, task=None)
    options = asdict(beam)
    if not model.config.writes:
        if beam != BeamOptions():
            raise InputError(f"{READS_ONLY} It takes no option of a search.")
        options = {}

    def run(text: str, changes: Sequence[Intervention]) -> Translation:
        return model.translate(text, interventions=changes, **options)

    return run, Known.of(model, directory)


def _write_all(file: Path, folder: Path, make: Callable[[str], tuple[Translation, str]]) -> int:
    """A page for each line of a file, and an index of them; lines without a page are named."""
    folder.mkdir(exist_ok=True)
    pages = dict[int, tuple[str, str]]()
    bad = []
    for number, text in filled_lines(file):
        try:
            run, html = make(text)
        except ValueError as error:
            bad.append(f"{file}:{number}: {error}")
            continue
        write_atomically(folder / f"{number}.html", html.encode())
        pages[number] = text, run.text
        print(f"{folder / str(number)}.html: {run.text}")
        warn(run.notes, f"{file}:{number}: ")
    write_atomically(folder / "index.html", index(pages).encode())
    return name_bad(bad)
