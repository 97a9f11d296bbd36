"""A survey against plain loops over runs, rows and keys; a visitor's file; the file of a survey."""

from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from random_models import random_translator

from explorer.app.server.pairs import read_upload
from explorer.figures.base import tasks
from explorer.lenses.heads.roles import LISTS
from explorer.lenses.heads.statistics import HeadsOfKind, added
from explorer.lenses.heads.survey import (
    BOUNDS,
    MOST_SENTENCES,
    MOST_TOKENS,
    Line,
    Survey,
    fingerprint,
    read_sentences,
    survey_of,
    surveyed,
    write_survey,
)
from explorer.lenses.heads.surveyor import LEAST, Surveyor
from explorer.lenses.measures.attribution import alti
from explorer.lenses.measures.stream import Heads
from explorer.lenses.words.groups import reading_groups
from explorer.lenses.words.links import GoldPair
from transformer.config import AttentionKind
from transformer.hooks import Capture
from transformer.storage.description import SURVEY_FILE, model_digests
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.storage.packed import read_packed, write_packed
from transformer.text.pairs import DataError
from transformer.translator import Translator, load_translator

ENCODER, DECODER, CROSS = KINDS = tuple(AttentionKind)
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LINES = [
    Line(
        " ".join(WORDS[(3 * i + j * (1 + i % 3)) % 10] for j in range(5 + i % 3)),
        # three times and twice
        f"eins zwei {'neun ' * (i in (2, 7, 11))}{'zehn ' * (i in (4, 5))}drei vier",
    )
    for i in range(20)
]


def surveyor_of(translator: Translator, lines, gold=()) -> Surveyor:
    surveyor = Surveyor(translator, lines, gold)
    assert list(surveyor.run()) == [0] * len(gold) + list(range(1, len(lines) + 1))
    return surveyor


# --- lists and orders ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(translator: Translator):
    return [translator.force(line.source, line.target or "") for line in LINES]


@pytest.fixture(scope="module")
def survey(translator: Translator) -> Survey:
    return surveyor_of(translator, LINES).survey()


def rows(runs, kind: AttentionKind, head: tuple[int, int]):
    """Every row of a head that sees more than one key: sentence, query, weights, keys it sees."""
    for number, run in enumerate(runs):
        view = run.head(kind, *head)
        for query, (weights, mask) in enumerate(zip(view.weights, view.mask, strict=True)):
            if mask.sum() > 1:
                yield number, query, weights.astype(float), mask


@pytest.mark.parametrize("by", ["weight", "lift"])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_those_with_most_weight_and_most_lift(runs, survey, kind, by):
    taken = defaultdict[str, float](float)
    even = defaultdict[str, float](float)
    seen = Counter[str]()
    words = []
    for run in runs:
        groups = reading_groups(run.labels(kind).keys)
        seen.update(group.text for group in groups)
        words.append({i: group.text for group in groups for i in group.indices})
    for number, _, weights, mask in rows(runs, kind, (0, 1)):
        for key in np.flatnonzero(mask):
            taken[words[number][key]] += weights[key]
            even[words[number][key]] += 1 / mask.sum()
    total = sum(taken.values())
    values = {w: (taken[w] / total, taken[w] / even[w]) for w in taken if seen[w] >= LEAST}
    best = sorted(values, key=lambda word: -values[word][by == "lift"])[:8]
    found = survey.tokens(kind, 0, 1, "words", by)
    assert [each[:2] for each in found] == [(word, seen[word]) for word in best]
    for each in found:
        assert each[2:] == pytest.approx(values[each.text], rel=1e-3)


@pytest.mark.parametrize("kind", [ENCODER, CROSS])
def test_queries_are_those_of_the_lowest_entropy(runs, survey, kind):
    selective = defaultdict[str, list[float]](list)
    for number, query, weights, mask in rows(runs, kind, (0, 1)):
        entropy = -(weights[mask] * np.log(np.maximum(weights[mask], 1e-30))).sum() / np.log(
            mask.sum()
        )
        names = runs[number].labels(kind)
        selective[(names.predicted or names.queries)[query].lstrip("▁")].append(1 - entropy)
    mean = np.mean([value for values in selective.values() for value in values])
    found = survey.tokens(kind, 0, 1, "pieces", "selective")
    often = {token: np.mean(values) for token, values in selective.items() if len(values) >= LEAST}
    assert [each.text for each in found] == sorted(often, key=lambda token: -often[token])[:8]
    for each in found:
        assert each.seen == len(selective[each.text])
        assert each[2:] == pytest.approx((often[each.text], often[each.text] / mean), rel=1e-3)


def test_the_length_of_the_value_of_the_end_is_that_beside_the_others(translator, runs, survey):
    ratios = []
    for run in runs:
        lengths = Heads(translator.model, run, CROSS, 2).values()[3].norm(dim=-1)
        ratios.append(float(lengths[-1] / lengths[:-1].mean()))
    assert survey.profiles[CROSS].means["eos_value"][2, 3] == pytest.approx(
        np.mean(ratios), rel=1e-4
    )


@pytest.mark.parametrize("order", ["entropy", "special_mass"])
def test_sentences_stand_in_order_and_open_at_their_row(runs, survey, order):
    by_line = defaultdict[int, dict[int, float]](dict)
    for number, query, weights, _ in rows(runs, CROSS, (2, 3)):
        names = runs[number].labels(CROSS).keys
        entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum() / np.log(len(names))
        mass = sum(w for w, name in zip(weights, names, strict=True) if name == "</s>")
        by_line[number][query] = entropy if order == "entropy" else mass
    ordered = sorted((float(np.mean([*each.values()])) for each in by_line.values()), reverse=True)
    fifths = survey.fifths(CROSS, 2, 3, order)
    shown = [each for fifth in fifths for each in fifth]
    assert [len(fifth) for fifth in fifths] == [3] * 5
    expected = [ordered[round(i * 19 / 14)] for i in range(15)]
    assert [each.value for each in shown] == pytest.approx(expected, abs=1e-5)
    for place, each in enumerate(shown):
        values = by_line[LINES.index(each.line)]
        best = (max if place <= 7 else min)(values.values())
        assert each.row is not None
        assert values[each.row] == pytest.approx(best, abs=1e-6)


# --- trials --------------------------------------------------------------------------------------

TRIED = [Line("one two three four", "eins zwei drei vier"), Line("two one four", "zwei drei eins")]


@pytest.fixture(scope="module", params=["pre", "post"])
def tried(request, tokenizer):
    model = random_translator(tokenizer, request.param)
    return model, surveyor_of(model, TRIED).survey()


def test_the_usual_share_of_the_source_is_that_of_all_inner_steps(tried):
    translator, survey = tried
    runs = [
        translator.force(*(line.source, line.target), capture=Capture(residual=True))
        for line in TRIED
    ]
    shares = [float(row.sum()) for run in runs for row in alti(translator.model, run).source[1:-1]]
    assert survey.usual == pytest.approx(np.percentile(shares, (5, 50, 95)), abs=1e-5)


# --- reading -------------------------------------------------------------------------------------

NUMBERS = [Line("one two three four"), Line("five six"), Line("one two three", "eins zwei")]


def test_a_survey_is_the_row_by_row_mean_of_its_sentences_and_can_be_stopped(
    translator: Translator,
):
    surveyor = Surveyor(translator, NUMBERS)
    with pytest.raises(ValueError, match="No sentence"):
        surveyor.survey()
    running = surveyor.run()
    for number in (1, 2):
        assert next(running) == number
        assert surveyor.survey().lines == (*NUMBERS[:number],)
    running.close()
    runs = [translator.translate(line.source) for line in NUMBERS[:2]]
    expected = added(HeadsOfKind.of(run, ENCODER).sums for run in runs).means()
    for name in ("entropy", "peak"):
        assert surveyor.survey().profiles[ENCODER].means[name] == pytest.approx(
            expected[name], rel=1e-5
        )


def test_what_cannot_be_read_is_left_out_and_without_a_choice_there_is_no_survey(
    closed_form_models,
):
    model = load_translator(closed_form_models["copy"])
    survey = surveyor_of(model, [Line("one two"), Line("one " * 70), Line("two one")]).survey()
    assert [line.source for line in survey.lines] == ["one two", "two one"]
    assert survey.skipped == 1
    portuguese = load_translator(Path(__file__).parents[4] / "assets/models/en-pt")
    lines = [Line("\N{GRINNING FACE}"), Line("He is old.")]  # the first translation is empty
    with pytest.raises(ValueError, match="no head has a choice"):
        surveyor_of(portuguese, lines[:1]).survey()
    assert surveyor_of(portuguese, lines).survey().sentences == 2


def upload(content: bytes, translator: Translator) -> tuple[Line, ...]:
    return read_upload(
        "lines.txt",
        content,
        partial(read_sentences, translator=translator, form=tasks.WORDS["translate"].line),
        BOUNDS,
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\xff\xfe\x00one", "line is not UTF-8"),
        (b"one\0two", "binary"),
        (b"PK\x03\x04" + bytes(200), "binary"),
        (b"one\ttwo\tthree", "3 columns"),
        (b"\tzwei", "Line 1: The text is empty"),
        (b"one\t \t", "3 columns"),
        (b"one\n" * (MOST_SENTENCES + 1), "more than 500 sentences"),
        (b"one\n\n" + b"one " * MOST_TOKENS, "Line 3 has"),
        (b"one " * BOUNDS.line, "more than 16 KiB"),
        (b"one\n\n" * BOUNDS.total, "at most 1 MiB"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_hostile_file_is_refused_in_one_sentence(translator: Translator, content, reason):
    with pytest.raises(DataError, match=reason) as refused:
        upload(content, translator)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 160


def test_a_file_of_sentences_and_pairs_is_read(translator: Translator):
    content = "\ufeffone two\r\n\n three\tdrei \n".encode()
    assert upload(content, translator) == (Line("one two"), Line(" three", "drei "))


# --- its file ------------------------------------------------------------------------------------

READ = [
    Line("one two three four five"),
    Line("six seven eight nine ten one"),
    Line("two two", "zwei zwei"),
]
GOLD = [
    GoldPair(("one", "two"), ("eins", "zwei"), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))
]


def written(directory: Path, translator: Translator, survey: Survey | None = None, **more) -> Path:
    """The file of a survey in a model's directory."""
    survey = survey or surveyor_of(translator, READ, GOLD).survey()
    save_checkpoint(
        directory, translator.config, translator.model.state_dict(), translator.tokenizer
    )
    head = {"date": "2026-01-02", "digests": model_digests(directory)}
    write_survey(directory, survey, READ, GOLD, head, **more)
    return directory / SURVEY_FILE


def test_a_file_says_what_the_survey_said(solved: Translator, tmp_path: Path):
    survey = surveyor_of(solved, READ, GOLD).survey()
    written(tmp_path, solved, survey)
    read = survey_of(tmp_path, READ, GOLD)
    assert (read.sentences, read.forced, read.pairs, read.skipped, read.date) == (
        3,
        1,
        1,
        0,
        "2026-01-02",
    )
    assert read.usual == pytest.approx(survey.usual)
    for kind, profile in survey.profiles.items():
        names = read.roles(kind)
        assert (names == survey.roles(kind)).all()
        assert surveyed(tmp_path)[kind] == np.where(names == "mixed", "", names).tolist()
        for name, values in profile.means.items():
            np.testing.assert_array_equal(read.profiles[kind].means[name], values)
        for name in ("kept", "distances", "chance", "told", "tokens", "marked", "sentences"):
            pair = (getattr(each.profiles[kind], name) for each in (read, survey))
            np.testing.assert_allclose(*pair, rtol=1e-3, atol=1e-4)
        for place in np.ndindex(*profile.kept.shape):
            for by in LISTS:
                found, known = (each.tokens(kind, *place, "words", by) for each in (read, survey))
                assert [each[:2] for each in found] == [each[:2] for each in known]
            found, known = (each.fifths(kind, *place, "entropy") for each in (read, survey))
            assert [[s.line for s in fifth] for fifth in found] == [
                [s.line for s in fifth] for fifth in known
            ]
    written(tmp_path, solved, survey, brief=True)
    brief = survey_of(tmp_path, READ, GOLD)
    assert (brief.brief, read.brief) == (True, False)
    np.testing.assert_array_equal(
        brief.profiles[CROSS].means["entropy"], survey.profiles[CROSS].means["entropy"]
    )


def test_other_weights_and_other_sentences_make_the_file_silent(
    translator: Translator, tmp_path: Path
):
    written(tmp_path, translator)
    assert survey_of(tmp_path, READ, GOLD) is not None
    again = [GoldPair(GOLD[0].source, GOLD[0].target, frozenset(), GOLD[0].possible)]
    others = [(READ[:2], GOLD), (READ, []), (READ[::-1], GOLD), (READ, again)]
    assert [survey_of(tmp_path, *other) for other in others] == [None] * 4
    assert len({fingerprint(*each) for each in [(READ, GOLD), *others]}) == 5
    (tmp_path / "model.safetensors").write_text("other")
    assert (survey_of(tmp_path, READ, GOLD), surveyed(tmp_path)) == (None, {})


def cut(end: str, part):
    return lambda head, arrays: arrays.update(
        {n: v[part] for n, v in arrays.items() if n.endswith(end)}
    )


def filled(end: str, value: float):
    return lambda head, arrays: [v.fill(value) for n, v in arrays.items() if n.endswith(end)]


def reworded(**words):
    return lambda head, arrays: [each.update(words) for each in head["kinds"].values()]


def no_entropy(head, arrays):
    for each in head["kinds"].values():
        each["means"] = [name.replace("entropy", "x") for name in each["means"]]


OF_ROLES = {
    "fewer heads": cut(".means", np.s_[:, :, :1]),
    "fewer layers": cut(".means", np.s_[:, :1]),
    "no numbers": filled(".means", np.nan),
    "no kinds": lambda head, arrays: head.update(kinds={}),
    "one kind": lambda head, arrays: head["kinds"].pop("cross"),
    "no entropy": no_entropy,
}
EDITS = OF_ROLES | {
    "no kept": lambda head, arrays: arrays.pop("encoder.kept"),
    "fewer kept": cut(".kept", np.s_[:1]),
    "fewer distances": cut(".distances", np.s_[..., :3]),
    "fewer chances": cut(".chance", np.s_[..., :3]),
    "flat lists": cut(".told", np.s_[..., 0]),
    "sentences that are not there": filled(".sentences", 9999),
    "tokens that are not there": filled(".tokens", 9999),
    "no shares": filled(".distances", np.nan),
    "no vocabulary": reworded(vocabulary={}),
    "no counts": reworded(counts={"words": [[], []]}),
    "less than no sentences": lambda head, arrays: head.update(sentences=-5),
    "a date of another kind": lambda head, arrays: head.update(date={"a": 1}),
    "shares that fall": lambda head, arrays: head.update(usual=[0.5, 0.4, 0.6]),
}


@pytest.mark.parametrize("edit", [*EDITS, "cut off"])
def test_a_file_that_is_cut_off_or_means_nothing_is_named(
    edit, translator: Translator, tmp_path: Path
):
    path = written(tmp_path, translator)
    if edit == "cut off":
        path.write_bytes(path.read_bytes()[:2000])
    else:
        head, arrays = read_packed(path)
        arrays = {name: np.array(values) for name, values in arrays.items()}
        EDITS[edit](head, arrays)
        write_packed(path, head, arrays)
    with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
        survey_of(tmp_path, READ, GOLD)
    if edit in OF_ROLES:
        with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
            surveyed(tmp_path)
