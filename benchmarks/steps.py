"""Steps through every position of many sentences on every page, without a browser.

    python benchmarks/steps.py --sentences 200 --minutes 10 [--model en-pt]

Every page is opened by a visitor of its own, who goes from step to step and from sentence to sentence.
The script prints what went wrong: an exception, a page whose view shows another step than the address, or
a choice whose options changed under the visitor. It ends with exit status 1 if anything did. If the time
is up, it says how far it came.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "tests" / "pages")]

import app_pages  # noqa: E402
from app_pages import LINKED, PAGES, view  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402
from test_every_step import changed, choices  # noqa: E402

from explorer.app.server.surveys import sample  # noqa: E402
from transformer.translator import load_translator  # noqa: E402


@dataclass
class Visitor:
    """One visit of a page, and what went wrong in it."""

    page: str
    model: str
    at: AppTest | None = None
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def go(self, text: str, step: int) -> None:
        """Opens a sentence at a step, counted from 0."""
        address = {"model": self.model, "text": text, "step": str(step + 1)}
        if self.at is None:
            self.at = app_pages.run(self.page, **address)
        else:
            self.at.query_params.update(address)
            self.at.run()
        for fault in self._faults(self.at, step):
            self.wrong.append(f"{self.page}, “{text}”, step {step + 1}: {fault}")

    def _faults(self, at: AppTest, step: int) -> list[str]:
        found = [f"exception: {each.value}" for each in at.exception]
        found += [f"options changed: {each}" for each in changed(self.known, choices(at))]
        if not found and self.page in LINKED and (shown := view(at)["step"]) != step:
            found.append(f"the view shows step {shown + 1}")
        return found


def main() -> int:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--skip", type=int, default=0, help="leave out so many sentences at the start")
    parser.add_argument("--every", type=int, default=1, help="take every n-th step")
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this time")
    parser.add_argument("--model", default="en-de", help="a bundled model")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    translator = load_translator(ROOT / "assets" / "models" / arguments.model)
    texts = [line.source for line in sample()][arguments.skip : arguments.skip + arguments.sentences]
    visitors = [Visitor(page, arguments.model) for page in PAGES]
    done = steps = 0
    for text in texts:
        if time.monotonic() > end:
            break
        count = len(translator.translate(text, capture=False).target_tokens)
        for step in range(done % arguments.every, count, arguments.every):
            for visitor in visitors:
                visitor.go(text, step)
            steps += 1
        done += 1
    wrong = [each for visitor in visitors for each in visitor.wrong]
    print(
        f"{done} of {len(texts)} sentences, {steps} steps on each of {len(PAGES)} pages: {len(wrong)} faults"
    )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
