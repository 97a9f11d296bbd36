"""Style sheets of the app: files that stand in the page itself, so that its first paint has them."""

from functools import cache
from pathlib import Path

_SHEETS = Path(__file__).resolve().parents[3] / "static/app-1/"


@cache
def sheet(name: str) -> str:
    """A style sheet in its element, for `st.html`; each file is read once."""
    rules = (_SHEETS / f"{name}.css").read_text("utf-8")
    return f"\n<style>\n{rules}</style>\n"
