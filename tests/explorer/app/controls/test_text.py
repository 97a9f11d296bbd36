from __future__ import annotations

import pytest

from explorer.app.controls import text


def test_every_sign_that_markdown_or_latex_reads_is_escaped() -> None:
    signs = "\\`*_{}[]()#+-.!|~$:<>^&"
    assert text.plain(f"a{signs}é 1") == "a" + "".join(f"\\{sign}" for sign in signs) + "é 1"


def test_a_command_loses_the_folders_outside_the_project() -> None:
    written = "python -m lab heads --model assets/en-de --data ../shared/valid.tsv.gz --x /a/b.tsv"
    assert text.command(written) == ("python -m lab heads --model assets/en-de --data valid.tsv.gz --x b.tsv")


def test_a_file_of_pairs_is_named_by_its_corpus_and_its_part() -> None:
    told = text.data("patterns: 500 pairs of tatoeba-en-de/valid.tsv.gz, forced; aer: 100 pairs of a/b-c.tsv")
    assert told == "patterns: 500 pairs of tatoeba-en-de (valid), forced; aer: 100 pairs of a (b-c)"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("/srv/app/models/en-xx/survey.json is damaged", "en-xx/survey.json is damaged"),
        ("no file '/home/me/a.npz'", "no file 'me/a.npz'"),
        ("see https://example.org/a/b/c or a/b/c/d", "see https://example.org/a/b/c or a/b/c/d"),
        ("/dev/full is full", "/dev/full is full"),
    ],
)
def test_a_refusal_does_not_say_where_a_file_lies_on_this_machine(error: str, told: str):
    assert text.refusal(ValueError(error)) == text.plain(told)
