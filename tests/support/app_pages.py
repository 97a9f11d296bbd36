"""A page of the app without a browser: opened with an address, and what it shows read back."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from closed_form import CASES
from random_models import random_encoder, random_language_model
from streamlit.testing.v1 import AppTest

from explorer.app.address import sitemap
from explorer.app.address.parameters import KEEP
from explorer.app.address.session import Visit
from explorer.app.server.queue import AT_ONCE, turns
from transformer.run import Translation
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer, Vocabulary
from transformer.text.words import MASK
from transformer.translator import Translator

ROOT = Path(__file__).resolve().parents[2]
LINKED = (
    "app.py",
    "pages/encoder_self_attention.py",
    "pages/decoder_self_attention.py",
    "pages/cross_attention.py",
    "pages/inside_a_head.py",
    "pages/whole_model.py",
)
"""Pages with a linked view."""
PAGES = tuple(sitemap.script(name) for name in sitemap.PAGES)
SENTENCE = CASES["copy"].sentence
HOSTILE = (
    "<script>alert(1)</script> </b> </s> {x} %{z} **one** $x$ [a](javascript:1) #000001 \u202eabc "
    "two"
)
HEADS = {
    "default": {"encoder": [1, 3], "decoder": [0, 1], "cross": [2, 2]},
    "heads": {
        kind: [
            [{"aer": 0.9 - head / 10, "previous": head / 10} for head in range(4)]
            for _ in range(layers)
        ]
        for kind, layers in (("encoder", 2), ("decoder", 3), ("cross", 3))
    },
}
"""What `heads.json` of the model `random` says."""


def write_app_models(folder: Path, closed_form: dict[str, Path], translator: Translator) -> Path:
    """A folder of models as a visitor's own: the closed-form ones, and `random` with facts on its
    heads."""
    for name, path in closed_form.items():
        (folder / name).symlink_to(path)
    state = translator.model.state_dict()
    save_checkpoint(folder / "random", translator.config, state, translator.tokenizer, heads=HEADS)
    write_language_model(folder, translator.tokenizer)
    return folder


def write_language_model(folder: Path, tokenizer: Vocabulary) -> Path:
    """The directory of a random language model among a visitor's own models."""
    model = random_language_model(vocab_size=tokenizer.vocab_size, trained_length=30)
    path = folder / "language" / "writer"
    save_checkpoint(path, model.config, model.state_dict(), tokenizer)
    return path


def write_encoder(path: Path, fills: bool) -> Path:
    """The directory of a random encoder alone, which predicts masked words or only reads."""
    texts = ["The cat is old.", "The old house is not for sale."] * 5
    tokenizer = Tokenizer.train(texts, 300, at_most=True, masks=True)
    model = random_encoder(
        vocab_size=tokenizer.vocab_size,
        mask_id=tokenizer.source.ids[MASK] if fills else None,
        output_bias=True,
        n_segments=2,
        max_positions=256,
    )
    save_checkpoint(path, model.config, model.state_dict(), tokenizer)
    return path


def run(
    page: str = "app.py",
    files: Mapping[str, Translation] | None = None,
    **params: str | list[str] | None,
) -> AppTest:
    """Opens a page with an address, without the parameters that are None, while the visitor has
    files open; nothing may go wrong."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if files:
        at.session_state["visit"] = Visit(files=dict(files))
    for name, value in {"model": "copy", "text": SENTENCE, **params}.items():
        if value is not None:
            at.query_params[name] = value
    if page != "app.py":
        at.switch_page(page)
    assert not at.run().exception
    return at


def visit(address: str, **params: str | list[str]) -> AppTest:
    """Opens `name?query` of a page; what the query says comes before the parameters."""
    name, _, query = address.partition("?")
    return run(sitemap.script(name), **(params | dict(parse_qsl(query, keep_blank_values=True))))


def functions(page: str) -> dict[str, Any]:
    """What the script of a page defines, without opening the page."""
    source, _ = re.split(r"\n(?=opened = |show\(\))", (ROOT / page).read_text())
    names: dict[str, Any] = {"__name__": __name__, "__file__": str(ROOT / page)}
    exec(compile(re.sub(r"with for_pytorch\(.*\):", "if True:", source), page, "exec"), names)
    return names


def click_menu(at: AppTest, page: str) -> AppTest:
    """Opens a page as a link to it does: with the query that the server sent with the link."""
    script = Path(page).stem.removeprefix("app")
    sent = [each.proto.query_string for each in at.get("page_link") if each.proto.page == script]
    at.query_params.clear()
    at.query_params.update(parse_qsl(sent[0]) if sent else KEEP)
    return at.switch_page(page).run()


def view(at: AppTest) -> dict[str, object]:
    """What the linked view was told."""
    return next(data for data in _told(at) if "ack" in data)


def feeds(at: AppTest) -> dict[str, dict[str, object]]:
    """What the feeders carry, by name, with what the audit found afterwards."""
    told = {data["name"]: data for data in _told(at) if "name" in data}
    proof = told.pop("proof", {})
    for name, badge in proof.get("badges", {}).items():
        told[name]["badge"] = badge
    return told


def _told(at: AppTest) -> list[dict[str, object]]:
    """The data of the components of this app, which travel as lists of one."""
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    return [data[0] for data in told if isinstance(data, list)]


def slots(at: AppTest) -> dict[str, dict[str, object]]:
    """What fills the slots of a page: by the name of a slot, its text or its pictures."""
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    filled: dict[str, dict[str, object]] = {}
    for data in told:
        if isinstance(data, dict):
            filled |= data.get("slots", {})
    return filled


def said(at: AppTest) -> str:
    """All notices and errors."""
    return " ".join(each.value for each in (*at.info, *at.error))


def words(at: AppTest) -> str:
    """All running text and captions."""
    return " ".join(each.value for each in (*at.markdown, *at.caption))


def charts(at: AppTest) -> list[dict]:
    """The figures of a page, from its top."""
    return list(named_charts(at).values())


def named_charts(at: AppTest) -> dict[str, dict]:
    """The figures of a page by their keys."""
    return {
        each.proto.id.split("-", 2)[2]: json.loads(each.proto.spec)
        for each in at.get("plotly_chart")
    }


def framed_rows(at: AppTest) -> dict[str, int]:
    """The row that a frame lies over, from 0, by the class of the figure's key."""
    style = re.compile(
        r"\.st-key-(\S+) \.gl-container::after .*?top: calc\(\S+ \+ (\d+) ", re.DOTALL
    )
    found = [style.search(each.proto.body) for each in at.get("html")]
    return {each[1]: int(each[2]) for each in found if each}


def array(packed: dict[str, str] | list[float]) -> np.ndarray:
    """An array of a figure: it travels as base64, or as a list."""
    if isinstance(packed, list):
        return np.array(packed)
    shape = [int(side) for side in packed.get("shape", "-1").split(",")]
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"]).reshape(shape)


def strip(chart: dict, name: str) -> np.ndarray:
    """The numbers of a strip."""
    return next(array(each["z"])[0] for each in chart["data"] if each.get("name") == name)


@contextmanager
def taken() -> Iterator[None]:
    """Others compute, so that long work of the app waits."""
    with ExitStack() as stack:
        for number in range(AT_ONCE):
            stack.enter_context(turns.turn(number, lambda before: None))
        yield
