from __future__ import annotations

import pytest

from transformer.storage.card import MOST_CHARACTERS, CardError, Header, paragraph, parse, scores


def grown(levels: int, field: str = "license") -> str:
    """A card whose header grows ninefold a level when its aliases are followed."""
    lines = ["a1: &a1 x"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(2, levels + 1)]
    return "\n".join(["---", *lines, f"{field}: *a{levels}", "---", "", "# Name", ""])


@pytest.mark.parametrize("levels", [2, 8])
@pytest.mark.parametrize("field", ["license", "language", "model-index", "anything"])
def test_aliases_are_refused_in_a_sentence_wherever_a_card_is_read(levels: int, field: str):
    card = grown(levels, field)
    assert len(card) < 600
    assert Header.of(card) == Header(trouble="The card’s header uses YAML aliases, so it is not read.")
    assert scores(card) == ()


def card(lines: str) -> str:
    return f"---\n{lines}\n---\n\n# Name\n"


def test_what_readers_rely_on_is_read_as_text():
    found = Header.of(card("language:\n- en\n- no\nlicense: 1.0\ngood_at: ~\nunknown: {a: [b]}"))
    assert found == Header(("en", "no"), "1.0")
    assert Header.of(card("language: en")).language == ("en",)
    assert Header.of("# Name\n\n---\nlicense: mit\n---\n") == Header.of("") == Header()


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("license: [a, b]\ngood_at: news", "license"),
        ("license: {a: b}\ngood_at: news", "license"),
        (f"license: {'x' * 101}\ngood_at: news", "license"),
        ("language: {en: de}\ngood_at: news", "language"),
        ("language: [en, [de]]\ngood_at: news", "language"),
        (f"tags: [{'a,' * 1001}]\nlicense: [a]\ngood_at: news", "license and tags"),
    ],
)
def test_a_field_of_another_kind_or_length_is_left_out_and_named(lines: str, named: str):
    wrong = f"The card’s {named} cannot be read: not of the kind or length that it should be."
    assert Header.of(card(lines)) == Header(good_at="news", trouble=wrong)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("a: [", "not valid YAML"),
        ("- 1", "not valid YAML with named values"),
        ("[" * 400, "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ('license: "\\ud800"', "not valid YAML"),
        ('language: "\\UFFFFFFFF"', "not valid YAML"),
        ("\n".join(f"{' ' * i}a:" for i in range(40)), "not valid YAML"),
        ("a: " + "x" * MOST_CHARACTERS, "more than 65,536 characters"),
    ],
    ids=range(9),
)
def test_a_header_that_cannot_be_read_is_refused_in_a_sentence(lines: str, says: str):
    with pytest.raises(CardError, match=says):
        parse(card(lines))
    assert says in Header.of(card(lines)).trouble
    assert scores(card(lines)) == ()


def index(value: str, name: str = "a test") -> str:
    metric = f"      - {{type: bleu, value: {value}, name: greedy}}"
    result = f"    - dataset: {{name: {name}}}\n      metrics:\n{metric}"
    return card(f"model-index:\n  - name: m\n    results:\n{result}")


def test_results_that_are_no_numbers_are_left_out():
    assert [each.value for each in scores(index("12.5"))] == [12.5]
    for wrong in ("much", ".nan", "nan", "1e999", "[1]", ":".join(["1"] * 200)):
        assert scores(index(wrong)) == ()
    assert scores(index("1", "[a]")) == scores(index("1", "x" * 301)) == ()


def test_scores_and_paragraphs_are_read_off_a_card():
    (score,) = scores(index("12.5"))
    assert (score.dataset, score.metric, score.value, score.how) == ("a test", "bleu", 12.5, "greedy")
    text = index("12.5") + "\n\n# A model\n\n## Training\n\nTwo hours\non one core.\n\n## Data\n"
    assert paragraph(text, "Training") == "Two hours on one core."
    assert paragraph(text, "Elsewhere") == ""
    for unreadable in ("", "# x", "---\n: [\n---\n", "---\n- a\n---\n", card("model-index:\n  - 3")):
        assert scores(unreadable) == ()
