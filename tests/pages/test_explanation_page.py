"""The page "Is attention an explanation?" shows what the measures give."""

from dataclasses import replace
from functools import partial, wraps

import numpy as np
import pytest
from app_pages import feeds, functions, named_charts, run

from explorer import lenses
from explorer.app.server import models
from explorer.figures.base.labels import percent
from explorer.lenses.measures import effect as effect_of_keys
from transformer import Capture, load_translator

PAGE = "pages/explanation.py"
TEXT = "one two three"
own = functions(PAGE)
opened = partial(run, PAGE, model="random", text=TEXT, step="2")


@pytest.fixture
def traced():
    translator = load_translator(models.find("random").path)
    return translator, translator.translate(TEXT, capture=Capture(residual=True))


def test_a_run_that_would_take_hours_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("explorer.app.maps.measures.MOST_TOKENS", 3)
    at = opened(text="one two three four")
    assert ["for at most 3 tokens a side" in each.value for each in at.error] == [True]
    assert not named_charts(at)


def test_the_home_page_shades_tokens_by_their_source_share_one_click_away(traced):
    found = lenses.alti(traced[0].model, traced[1]).source.sum(1)
    at = run(model="random", text=TEXT)
    for on in (True, False):
        next(each for each in at.button if each.label == "Source share").click().run()
        chips = feeds(at)["strips"]["target"]
        assert ("shade" in chips[0]) is ("shares" in at.query_params) is on
        for chip in chips if on else ():
            most = float(max(found[chip["first"] : chip["last"] + 1]))
            assert chip["shade"] == pytest.approx(most, abs=1e-5)
            assert chip["gloss"] == {"text": percent(most), "origin": "source (ALTI+)"}
            assert "from the source (ALTI+)" in chip["title"]


# --- the sentences that the page makes of its numbers --------------------------------------------

LIES = "In this head, 70 % of the weight lies on **a**, which"
MOST = f"{LIES} also carried most"
SINK = f"{MOST} (a sink: its value is 0.10 long, the median 1.00)."
LESS = "1.6 times less probable", "2.5 times less probable"
RESTS = "**“x” rests on “b”**: without it −5.60 nats, 270 times less probable; "
APART = "Apart from these, the first step, which has no prefix but a start, has 90 %"
END = f"{APART} and `</s>`, which ends the sentence, 20 %."
START = "Between the first step and the end, it is **50 %**:"


def differ(value: float, norms: list[float], effects: list[float]) -> str:
    weights = np.array([0.7, 0.2, 0.1])
    lengths = np.array([value, 1.0, 1.1])
    more = np.array([*norms, 0.1]), np.array([*effects, effects[1] * 0])
    return own["differ"](weights, lengths, *more, ["a", "b", "c"], "x")


def rests(*effects: float) -> str:
    return own["rests_on"](["a", "b", "c"], np.array(effects), "x", "source word")


def leaning(*shares: float) -> str:
    return own["leaning"]([*"abcdefg"[: len(shares) - 1], "</s>"], np.array(shares), True)


def detached(most: float, *shares: float) -> str:
    return own["detached"]([*"abcde", "</s>"], np.array(shares), most, True).partition(" stays")[0]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (lambda: differ(0.1, [0.9, 0.2], [-0.5, -0.1]),
         f"{SINK} “x” loses most without **a**: −0.50 nats, {LESS[0]}."),
        (lambda: differ(0.9, [0.1, 0.2], [-0.5, -0.9]),
         f"{LIES} carried less than **b**. “x” loses most without **b**: −0.90 nats, {LESS[1]}."),
        (lambda: differ(0.9, [0.9, 0.2], [-0.01, 0]),
         f"{MOST}. Without any single key of it, “x” stays about as probable."),
        (lambda: differ(0.9, [0.9, 0.2], [-0.01, 0.6]),
         f"{MOST}. No single key costs “x” 0.05 nats; without **b** it even gets more probable: +0.60 nats."),
        (lambda: differ(0.9, [0.9, 0.2], [np.nan] * 2),
         "This query sees one key only, so nothing can be taken away from it."),
        (lambda: rests(-0.3, -5.6, 0.1), f"{RESTS}next “a”, −0.30."),
        (lambda: rests(-0.04, -5.6, 0.1), f"{RESTS}no other word costs it 0.05 nats."),
        (lambda: rests(-0.04, -0.29, 0.1),
         "“x” rests on no single source word: without “b”, which it misses most, log p changes by "
         "−0.29 nats."),
        (lambda: rests(-0.04, 0.0, 0.1),
         "“x” rests on no single source word: none of them costs it 0.05 nats."),
        (lambda: leaning(0.9), f"{APART}."),
        (lambda: leaning(0.9, 0.2), END),
        (lambda: leaning(0.9, 0.5, 0.2), f"{START} this is **b**. {END}"),
        (lambda: leaning(0.9, 0.5, 0.7, 0.3, 0.2),
         f"{START} **c** leans on it most (70 %), **d** least (30 %). {END}"),
        (lambda: detached(0.4, 0.1, 0.9, 0.2, 0.3, 0.2, 0.1), "From “c” to “e”, 3 steps, the source's share"),
        (lambda: detached(0.4, 0.1, 0.2, 0.3, 0.9, 0.2, 0.1), ""),
        (lambda: detached(0.2, 0.1, 0.9, 0.2, 0.3, 0.2, 0.1), ""),
    ],
)  # fmt: skip
def test_a_sentence_says_what_its_numbers_show(said, told: str):
    assert said().replace("\xa0", " ") == told


# --- badges --------------------------------------------------------------------------------------

VIEWS = {
    "words": "",
    "measures": "",
    "parts": "why",
    "tokens.cross": "why",
    "source share": "shares",
    "source tokens": "shares",
}


def captions_of(view: str) -> dict[str, str]:
    """The caption of each figure of the page, by the figure's name."""
    at = opened(view=view) if view else opened()
    told = [each.value for each in at.caption if "✓" in each.value or "✗" in each.value]
    return dict(zip(named_charts(at), told, strict=True))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs each series of effects made."""
    runs = list[int]()
    computed = effect_of_keys.Effects._log_probs

    def counting(self, *given, **named):
        found = computed(self, *given, **named)
        runs.append(len(found))
        return found

    monkeypatch.setattr(effect_of_keys.Effects, "_log_probs", counting)
    return runs


def test_a_badge_says_how_many_runs_were_made_and_of_which_numbers(counted, traced):
    source = len(traced[1].source_tokens)
    first = captions_of("")["words"]
    second = captions_of("why")["tokens.cross"]
    assert first.endswith(f"✓ from {1 + source} runs")
    assert captions_of("")["measures"].endswith(
        f"✓ from a verified trace, effects from {1 + source} runs"
    )
    assert second.endswith(f"✓ from a verified trace, effects from {2 + 2 * source} runs")
    made = [counted[i] + counted[i + 1] for i in range(0, len(counted), 2)]
    assert made == [1 + source] * len(made)


def forge_sum(monkeypatch: pytest.MonkeyPatch, lens: str) -> None:
    """Lets a measure's parts be three times what they are; its own check tells."""
    honest = getattr(lenses, lens)

    def tripled(*given, **named):
        found = honest(*given, **named)
        (check,) = found.audit.checks
        return found._replace(audit=replace(found.audit, checks=(replace(check, value=2.0),)))

    monkeypatch.setattr(lenses, lens, wraps(honest)(tripled))


@pytest.mark.parametrize(
    ("lens", "figure"),
    [
        ("attribution", "parts"),
        ("alti", "source share"),
        ("alti", "source tokens"),
        ("carried", "measures"),
    ],
)
def test_a_measure_whose_parts_miss_their_total_says_so(lens: str, figure: str, monkeypatch):
    told = captions_of(VIEWS[figure])[figure]
    assert told.endswith("✓ sums up") or "effects from" in told
    forge_sum(monkeypatch, lens)
    assert captions_of(VIEWS[figure])[figure].endswith("✗ does not sum up")
