"""README's picture: the app in use, frame by frame, and one of its frames for who wants no motion."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PIL import Image

from benchmarks.browser import chromium, served
from benchmarks.looks import DRAWN
from benchmarks.timing import ASSETS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

MOVING = ASSETS / "screenshots" / "home.webp"
STILL = ASSETS / "screenshots" / "home-still.webp"
WINDOW = (1280, 800)
SENTENCE = "She wrote a long letter to her brother."
BEFORE = 3
"""Steps before those that are shown, the last of which writes the brother."""
CHARACTERS = 3
"""Typed from one frame to the next."""
KEY, STEP, READ = 100, 1000, 2600
"""Milliseconds that a frame stays: while somebody types, at a step, where there is much to see."""
POINTER = """() => {
  const pointer = document.createElement("div");
  pointer.id = "pointer";
  pointer.innerHTML = `<svg width="22" height="28" viewBox="0 0 22 28">
    <path d="M2 2v20l5-4 4 8 4-2-4-8h7z" fill="#111" stroke="#fff" stroke-width="1.5"/></svg>`;
  pointer.style = "position: fixed; z-index: 9999999; pointer-events: none; left: 600px; top: 640px";
  document.body.append(pointer);
}"""
MOVE = """([x, y]) => {
  const pointer = document.querySelector("#pointer");
  pointer.style.left = `${x - 2}px`;
  pointer.style.top = `${y - 2}px`;
}"""
"""A screenshot has no pointer: one that is drawn, and goes where the mouse is."""


@dataclass
class Film:
    """The frames of a page in use."""

    page: Page
    frames: list[Image.Image] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)  # in milliseconds

    def take(self, duration: int) -> None:
        """Adds the page as it is."""
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture)
        self.durations.append(duration)

    def rests(self) -> None:
        """Waits until the page is drawn and checked."""
        self.page.wait_for_selector(".lv[data-ready=true] .main-svg", timeout=120_000)
        self.page.wait_for_function(DRAWN, timeout=120_000)
        badges = "[...document.querySelectorAll('.lv-badge')]"
        checked = f"{badges}.every((badge) => !badge.textContent.includes('checking'))"
        self.page.wait_for_function(checked, timeout=120_000)
        self.page.wait_for_timeout(400)

    def leave(self) -> None:
        """Moves the pointer to where it covers nothing."""
        corner = (WINDOW[0] - 30, WINDOW[1] - 40)
        self.page.mouse.move(*corner)
        self.page.evaluate(MOVE, corner)

    def click(self, place: Locator) -> None:
        """Moves the pointer to a place, and clicks it."""
        place.hover()
        box = place.bounding_box()
        assert box is not None
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.evaluate(MOVE, middle)
        self.take(KEY * 6)
        place.click()

    def type(self, text: str) -> None:
        """Types a text over the one of the box, a few characters a frame."""
        box = self.page.locator(".st-key-top").get_by_role("textbox").first
        self.click(box)
        box.fill("")
        for start in range(0, len(text), CHARACTERS):
            self.page.keyboard.type(text[start : start + CHARACTERS])
            self.take(KEY)

    def enter(self, done: str) -> None:
        """Presses Enter, and waits until the page says something."""
        self.take(KEY * 4)
        self.page.keyboard.press("Enter")
        self.page.wait_for_function(
            "(done) => document.querySelector('.lv').innerText.includes(done)", arg=done
        )
        self.rests()

    def save(self, path: Path) -> None:
        """Writes the frames as a picture that moves, over and over."""
        first, *further = self.frames
        first.save(
            path,
            save_all=True,
            append_images=further,
            duration=self.durations,
            loop=0,
            lossless=True,  # smaller than lossy: a frame changes few areas, of few colours
            method=6,
            minimize_size=True,
        )


def picture() -> int:
    """Takes README's pictures again: the one that moves, and the still one."""
    with served() as there, chromium() as browser:
        context = browser.new_context(
            viewport={"width": WINDOW[0], "height": WINDOW[1]},
            color_scheme="light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(there.url)
        film = Film(page)
        film.rests()
        page.evaluate(POINTER)
        _translates(film)
        still = film.frames[-1]
        _switches_off(film)
        _continues(film)
    film.save(MOVING)
    still.save(STILL, lossless=True, method=6)
    seconds = sum(film.durations) / 1000
    sizes = " and ".join(f"{path.stat().st_size / 1000:.0f} kB" for path in (MOVING, STILL))
    print(f"{len(film.frames)} frames, {seconds:.1f} s; {sizes}")
    return 0


def _translates(film: Film) -> None:
    """Types a sentence, and steps through its translation."""
    page = film.page
    film.take(READ)
    film.type(SENTENCE)
    film.enter("letter")
    film.take(STEP)
    page.focus(".lv")
    page.keyboard.press("Home")
    for _ in range(BEFORE):
        page.keyboard.press("ArrowRight")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        film.rests()
        film.take(STEP)


def _switches_off(film: Film) -> None:
    """Switches a head off, and reads what the model writes now."""
    page = film.page
    film.click(page.locator("[data-plot=cross] [data-act=off]"))
    page.wait_for_selector(".st-key-changed button")
    film.rests()
    film.take(READ)
    page.focus(".lv")
    page.keyboard.press("ArrowRight")
    film.rests()
    film.take(READ)


def _continues(film: Film) -> None:
    """Chooses the language model."""
    page = film.page
    film.click(page.locator(".st-key-changed button").first)
    page.wait_for_function("!document.querySelector('.st-key-changed button')")
    film.rests()
    film.click(page.get_by_role("combobox", name="Model").first)
    choice = page.get_by_role("option", name="English language model").first
    choice.wait_for()
    film.click(choice)
    page.wait_for_selector("[data-plot=wall]")
    film.leave()
    film.rests()
    film.take(READ)
