"""Word alignment on the cross-attention page: known links, gold pairs, the address."""

import gzip
import tracemalloc
from itertools import cycle, islice

import pytest
from app_pages import charts, run, words
from closed_form import CASES

from explorer.app.sections.cross_attention import alignment as gold_picker
from explorer.app.server import gold, models
from explorer.figures.base.bars import percent
from explorer.lenses.words.links import read_gold
from transformer.text.pairs import DataError

PAGE = "pages/cross_attention.py"
NUMBERS = ("one", "two", "three", "four", "five", "six", "eight", "nine", "ten")


def known(name: str) -> str:
    """The links of head 1, written from 1 as the address does."""
    case = CASES[name]
    return ",".join(f"{key + 1}-{row + 1}" for row, key in enumerate(case.keys("cross", 0)[:-1]))


def align(**params: str) -> object:
    return run(PAGE, view="alignment", **params)


@pytest.mark.parametrize("name", CASES)
def test_the_head_that_translates_has_no_error_and_is_offered_as_the_best(name: str):
    at = align(model=name, text=CASES[name].sentence, pairs=known(name), cross="1.2")
    assert (
        "The head with the lowest error is **head 1 of layer 1**: "
        "AER 0\u00a0%, precision 100\u00a0%, recall 100\u00a0%" in words(at)
    )
    assert "Head 2 of layer 1" in words(at)
    next(each for each in at.button if each.label == "Open head 1 of layer 1").click().run()
    assert at.query_params["cross"] in ("1.1", ["1.1"])
    assert "Head 1 of layer 1" in words(at)
    assert "**AER 0\u00a0%**" in words(at)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"rule": "mutual"}, "**AER 0\u00a0%**"),
        ({"rows": "read"}, "row that reads the word"),
        ({"model": "positions/rotary"}, "the mean over all heads of layer 3: the model's best aligner"),
        ({"model": "positions/t5"}, "The mean over all heads of layers 1 to 3 suggests"),
        ({"pairs": "1-1,90-1"}, "Links in the address that lie outside this text are left out: 1."),
    ],
    ids=str,
)
def test_what_the_address_chooses_is_named(params: dict[str, str], told: str):
    at = align(**{"cross": "1.1", "pairs": known("copy"), **params})
    assert told in words(at)
    if params == {"rows": "read"}:
        assert "**AER 0\u00a0%**" not in words(at), "it is one later than the row that predicts"


def test_links_can_be_cleared_and_without_them_the_page_says_how_to_make_them():
    at = align(pairs="1-1")
    next(each for each in at.button if "Clear the links" in each.label).click().run()
    assert "pairs" not in at.query_params
    assert "No links made by hand yet" in words(at)
    assert not at.dataframe


def test_a_gold_pair_is_forced_and_brings_its_links(monkeypatch: pytest.MonkeyPatch, tmp_path):
    (tmp_path / "gold.tsv").write_text("one two .\teins zwei .\t0-0 1p1 2-2\n", encoding="utf-8")
    monkeypatch.setattr(gold_picker, "sample", lambda _: read_gold(tmp_path / "gold.tsv"))
    at = align(model="random")
    picker = next(each for each in at.selectbox if "bundled sample" in each.label)
    picker.select_index(1).run()
    assert not at.exception
    held = {name: value[-1] if isinstance(value, list) else value for name, value in at.query_params.items()}
    assert (held["text"], held["target"], held["pairs"]) == ("one two .", "eins zwei .", "1-1,2p2,3-3")
    assert held["gold"] == "sample-1"
    assert "Against 2 sure links made by hand" in words(at)
    at.text_input[0].set_value("nine ten").run()
    assert "pairs" not in at.query_params
    assert "gold" not in at.query_params


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb", "the file:1: .*2 columns"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "is empty"),
        (b"x" * 2**22, "at most 2 MiB"),
        *(
            (f"a\tb\t{link}\n".encode(), "the file:1: .* is not a link")
            for link in ("9" * 5000 + "-0", "0-" + "9" * 5000, "٣-0")
        ),
    ],
    ids=["columns", "bytes", "empty", "large", "source", "target", "digit"],
)
def test_a_file_that_is_no_gold_file_gets_a_short_sentence(content: bytes, message: str):
    with pytest.raises(DataError, match=message) as refused:
        gold.parse("gold.tsv", content)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\t0-0\n" * 1_500_000, "unpacks to more than 2 MB|more than 2,000 lines"),
        (b"a " * 25_000_000 + b"\tb\t0-0\n", "the file:1: this line has more than 64 KiB"),
    ],
    ids=["rows", "words"],
)
def test_a_gold_file_that_unpacks_without_end_takes_little_memory(content: bytes, message: str):
    packed = gzip.compress(content)
    assert len(packed) < gold.LARGEST
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message):
            gold.parse("gold.tsv.gz", packed)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def test_a_gold_file_is_parsed_once_and_not_at_every_run(monkeypatch: pytest.MonkeyPatch):
    parsed = []
    monkeypatch.setattr(
        gold_picker,
        "parse",
        lambda name, content: parsed.append(name) or gold.sample(models.find("en-de"))[:2],
    )
    at = align(model="random")
    at.file_uploader[0].upload("gold.tsv", b"a\tb\t0-0\n", "text/plain").run()
    at.run()
    assert not at.exception
    assert parsed == ["gold.tsv"]
    assert any("pairs of your file" in each.label for each in at.selectbox)


@pytest.mark.parametrize("length", [1, 41, 70])
def test_no_word_is_dropped(length: int):
    at = align(model="random", text=" ".join(islice(cycle(NUMBERS), length)))
    layout = charts(at)[0]["layout"]
    assert len(layout["xaxis"]["ticktext"]) == length
    assert layout["xaxis"]["ticktext"][0].startswith("one")
    assert " · target words" not in words(at)


def test_the_best_aligner_opens_and_comes_back_after_another_was_chosen():
    best = models.find("en-de").heads["aligner"]
    ((layer, head),) = best["heads"]
    name = f"Head {head + 1} of layer {layer + 1}"
    at = align(model="en-de", text="The dog sleeps.")
    assert f"{name} suggests" in words(at)
    assert (
        f"this model's best aligner, over pairs with links made by hand, is **{percent(best['aer'])}**"
        in (words(at).replace("\\", ""))
    )
    assert [each for each in at.button if each.label == "Best aligner"] == []
    elsewhere = "your head stays chosen elsewhere"
    assert elsewhere not in words(
        align(model="en-de", text="The dog sleeps.", cross=f"{layer + 1}.{head + 1}")
    )
    assert elsewhere in words(align(model="en-de", text="The dog sleeps.", cross="3.4"))
    rows = next(each for each in at.selectbox if each.label == "Row")
    assert rows.value == best["rows"]
    rows.set_value("predicted").run()
    assert f"{name} suggests" in words(at)
    assert "best aligner" not in words(at)
    assert at.query_params["aligner"] in ("own", ["own"])
    next(each for each in at.button if each.label == "Best aligner").click().run()
    assert next(each for each in at.selectbox if each.label == "Row").value == best["rows"]
    assert "aligner" not in at.query_params
