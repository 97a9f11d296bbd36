"""Word alignment on the cross-attention page: known links, gold pairs, the best aligner,
windows."""

import gzip
import re
import tracemalloc
from html import unescape
from itertools import cycle, islice

import pytest
from app_pages import charts, run, words
from closed_form import CASES

from explorer.app.sections.cross_attention import alignment as gold_picker
from explorer.app.sections.cross_attention.links import Aligner, LinkRules
from explorer.app.server import models, pairs
from explorer.figures.base.labels import percent
from explorer.lenses.words.links import read_gold
from transformer.text.pairs import DataError

NUMBERS = ("one", "two", "three", "four", "five", "six", "eight", "nine", "ten")
DOG = {"model": "en-de", "text": "The dog sleeps."}


def known(name: str) -> str:
    """The links of head 1, written from 1 as the address does."""
    return ",".join(
        f"{key + 1}-{row + 1}" for row, key in enumerate(CASES[name].keys("cross", 0)[:-1])
    )


def align(**params: str):
    return run("pages/cross_attention.py", view="alignment", **params)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Set the locale to pt_BR now.", ["pt_BR"]),
        ("The language codes are en_US, pt_BR and zh_CN.", ["en_US", "pt_BR", "zh_CN"]),
        ("Use zh_CN.", ["zh_CN"]),
        ("The flag <s> is gone.", ["<s>"]),
        ("Write </s> and fra_Latn there.", ["</s>", "fra_Latn"]),
    ],
)
def test_a_word_that_looks_like_a_special_token_is_on_the_axis(text: str, typed: list[str]):
    (figure,) = charts(align(model="en-pt", text=text))
    shown = list(map(unescape, figure["layout"]["xaxis"]["ticktext"]))
    assert [word for word in typed if word not in shown] == []
    assert len(shown) == len(re.findall(r"[\w<>/]+|[.,]", text))


def box(at, label: str):
    return next(each for each in at.selectbox if label in each.label)


@pytest.mark.parametrize("name", CASES)
def test_the_head_that_translates_has_no_error_and_is_offered_as_the_best(name: str):
    at = align(model=name, text=CASES[name].sentence, pairs=known(name), cross="1.2")
    best = "The head with the lowest error is **head 1 of layer 1**: AER 0\xa0%, precision 100\xa0%"
    assert best in words(at)
    assert "Head 2 of layer 1" in words(at)
    next(each for each in at.button if each.label == "Open head 1 of layer 1").click().run()
    assert at.query_params["cross"] in ("1.1", ["1.1"])
    assert "**AER 0\xa0%**" in words(at)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"model": "positions/rotary"}, "The mean over all heads of layer 3 suggests"),
        ({"model": "positions/t5"}, "The mean over all heads of layers 1 to 3 suggests"),
        ({"pairs": "1-1,90-1"}, "Links in the address that lie outside this text are left out: 1."),
    ],
    ids=str,
)
def test_what_the_address_chooses_is_named(params: dict[str, str], told: str):
    assert told in words(align(**{"cross": "1.1", "pairs": known("copy"), **params}))
    mean = LinkRules(Aligner(((0, 1), (2, 0)), "read"), "mutual", None)
    assert mean.name == "the mean over all heads of layers 1 to 3"


def test_a_gold_pair_is_forced_and_brings_its_links(monkeypatch: pytest.MonkeyPatch, tmp_path):
    (tmp_path / "gold.tsv").write_text("one two .\teins zwei .\t0-0 1p1 2-2\n", encoding="utf-8")
    monkeypatch.setattr(gold_picker, "linked", lambda _: read_gold(tmp_path / "gold.tsv"))
    at = align(model="random")
    box(at, "bundled sample").select_index(1).run()
    assert not at.exception
    held = {
        name: value[-1] if isinstance(value, list) else value
        for name, value in at.query_params.items()
    }
    chosen = {
        "text": "one two .",
        "target": "eins zwei .",
        "pairs": "1-1,2p2,3-3",
        "gold": "sample-1",
    }
    assert held.items() >= chosen.items()
    assert "Against 2 sure links made by hand" in words(at)
    at.text_input[0].set_value("nine ten").run()
    assert not {"pairs", "gold"} & set(at.query_params)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb", "the file:1: .*2 columns"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "is empty"),
        (b"x" * 2**22, "at most 2 MiB"),
        (b"a\tb\t" + b"9" * 5000 + b"-0\n", "the file:1: .* is not a link"),
        (b"a\tb\t0-" + b"9" * 5000 + b"\n", "the file:1: .* is not a link"),
        ("a\tb\t٣-0\n".encode(), "the file:1: .* is not a link"),
        (
            gzip.compress(b"a\tb\t0-0\n" * 1_500_000),
            "unpacks to more than 2 MB|more than 2,000 lines",
        ),
        (
            gzip.compress(b"a " * 25_000_000 + b"\tb\t0-0\n"),
            "the file:1: this line has more than 64 KiB",
        ),
    ],
    ids=range(9),
)
def test_a_file_that_is_no_gold_file_gets_a_short_sentence_and_little_memory(
    content: bytes, message: str
):
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message) as refused:
            pairs.read_upload(
                "gold.tsv.gz" if content[:2] == b"\x1f\x8b" else "gold.tsv", content, read_gold
            )
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    assert len(str(refused.value)) < 200


def test_a_gold_file_is_parsed_once_and_not_at_every_run(monkeypatch: pytest.MonkeyPatch):
    parsed = []
    known = pairs.linked(models.find("en-de"))
    read = lambda name, content, read: parsed.append(name) or known[:2]  # noqa: E731
    monkeypatch.setattr(gold_picker, "read_upload", read)
    at = align(model="random")
    at.file_uploader[0].upload("gold.tsv", b"a\tb\t0-0\n", "text/plain").run()
    assert not at.run().exception
    assert parsed == ["gold.tsv"]
    assert box(at, "pairs of your file")


@pytest.mark.parametrize("length", [1, 41, 70])
def test_no_word_is_dropped_below_the_window_which_can_be_moved(length: int):
    at = align(model="random", text=" ".join(islice(cycle(NUMBERS), length)))
    names = charts(at)[0]["layout"]["xaxis"]["ticktext"]
    assert (len(names), names[0][:3]) == (length, "one")
    assert " · target words" not in words(at)
    if length == 70:
        at = align(model="random", text=" ".join(NUMBERS * 12), step="90", pairs="1-1")
        _, source = (each for each in at.selectbox if each.label == "Row of the cursor")
        assert not source.select_index(2).run().exception
        assert "source words 1–100" in words(at)


def test_the_best_aligner_opens_and_comes_back_after_another_was_chosen():
    best = models.find("en-de").heads["aligner"]
    ((layer, head),) = best["heads"]
    name = f"Head {head + 1} of layer {layer + 1}"
    at = align(**DOG)
    assert f"{name} suggests" in words(at)
    measured = gold_picker.gold_of(models.find("en-de").heads)
    assert measured.startswith("the 100 pairs of alignments")
    error = f"best aligner, over {measured}, is **{percent(best['aer'])}**"
    assert error.replace("\\", "") in words(at).replace("\\", "")
    assert (box(at, "Head of").value, box(at, "Row").value) == (None, best["rows"])
    box(at, "Row").set_value("predicted").run()
    assert f"{name} suggests" in words(at)
    assert (box(at, "Head of").value, "aligner" in at.query_params) == ((layer, head), True)
    box(at, "Head of").select_index(0).run()
    assert (box(at, "Row").value, "aligner" in at.query_params) == (best["rows"], False)


def test_where_a_mean_is_the_best_aligner_the_head_that_is_chosen_elsewhere_can_be_seen_alone():
    at = align(model="positions/rotary", text="The dog sleeps.", cross="1.2")
    assert (box(at, "Head of").value, "The mean over all heads" in words(at)) == (None, True)
    box(at, "Head of").set_value((0, 1)).run()
    assert "Head 2 of layer 1 suggests" in words(at)
