"""Joined texts: every sentence once, and those that stand together share a word."""

from __future__ import annotations

from collections import Counter

from lab.texts.joined import MOST_SENTENCES, joined

RARE = [f"The zebra number {i} sleeps here." for i in "ABC"] + [f"My tuba {i} is loud today." for i in "ABC"]
COMMON = ["He sleeps.", "It is loud.", "She waits."]


def test_sentences_with_the_same_rare_word_become_one_text():
    texts = joined(RARE, every=1)
    assert sorted(map(len, (text.split(".") for text in texts))) == [4, 4]
    for text in texts:
        assert ("zebra" in text) != ("tuba" in text)


def test_every_sentence_stands_in_one_text():
    sentences = RARE * 1 + COMMON
    words = Counter(word for sentence in sentences for word in sentence.split())
    assert Counter(word for text in joined(sentences) for word in text.split()) == words


def test_a_text_has_few_sentences():
    many = [f"The zebra {chr(97 + i)} runs." for i in range(17)]
    assert max(text.count(".") for text in joined(many, every=1)) <= MOST_SENTENCES


def test_what_shares_no_word_stays_alone():
    assert sorted(joined(["Alpha beta.", "Gamma delta."], every=1)) == ["Alpha beta.", "Gamma delta."]
