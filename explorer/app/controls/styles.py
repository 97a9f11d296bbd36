"""Style sheets of the app: files that stand in the page itself, so that its first paint has them."""

from functools import cache

from explorer.linked import served


@cache
def sheet(name: str) -> str:
    """A style sheet in its element, for `st.html`; each file is read once."""
    rules = (served.scripts() / "app" / f"{name}.css").read_text("utf-8")
    return f"\n<style>\n{rules}</style>\n"
