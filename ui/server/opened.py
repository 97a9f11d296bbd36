"""A sentence that is ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lenses.words.telling import text_words
from linked.view import EXAMPLE, Gloss, glossed
from transformer.runs.translation import Translation
from ui.server import examples, runs
from ui.server.runs import Request


@dataclass(frozen=True)
class Opened:
    """A sentence that is ready to be shown."""

    asked: Request  # the request that identifies the translation
    translation: Translation  # the translation with its trace
    example: examples.Example | None  # the example with this sentence, or None

    @property
    def trace(self) -> str:
        """The short name on which figures, events and the view agree."""
        return self.asked.trace

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention that the run has, in the order of its model's table."""
        return tuple(map(str, self.translation.config.sites))

    def traced(self) -> Opened:
        """The same sentence with the whole trace of its translation; waits for the model."""
        return replace(self, translation=runs.traced(self.asked, runs.NoProgress()))

    @property
    def first_step(self) -> int:
        """The step that opens first: the one of the example's claim, else the most telling one."""
        claimed = self.claimed_step
        return runs.told(self.asked, self.translation).step if claimed is None else claimed

    @property
    def claimed_step(self) -> int | None:
        """The step that shows the example's claim; None without an example, or if its word does not occur."""
        if self.example is None:
            return None
        return examples.claim_step(self.example, self.translation.target_tokens)

    @property
    def glosses(self) -> dict[int, Gloss]:
        """A word under each target word that has one, by the position (from 0) of the word's first piece."""
        told = runs.told(self.asked, self.translation).glosses
        found = glossed(told, runs.aligner(self.asked.model)) if told else {}
        for word in text_words(self.translation.target_tokens) if self.example else ():
            if self.example is not None and (text := self.example.gloss.get(word.text)):
                found[word.start] = Gloss(text=text, origin=EXAMPLE)
        return found
