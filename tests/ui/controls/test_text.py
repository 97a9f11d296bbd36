from __future__ import annotations

from ui.controls import text


def test_a_command_loses_the_folders_outside_the_project() -> None:
    written = "python -m lab heads --model assets/en-de --data ../shared/valid.tsv.gz --x /a/b.tsv"
    assert text.command(written) == ("python -m lab heads --model assets/en-de --data valid.tsv.gz --x b.tsv")


def test_a_file_of_pairs_is_named_by_its_corpus_and_its_part() -> None:
    told = text.data("patterns: 500 pairs of tatoeba-en-de/valid.tsv.gz, forced; aer: 100 pairs of a/b-c.tsv")
    assert told == "patterns: 500 pairs of tatoeba-en-de (valid), forced; aer: 100 pairs of a (b-c)"
