"""The map of the app: every page and section by name, what it shows in a line, and what to look at
next.

It follows from what the pages declare in `pages.py`.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from explorer.app.address.pages import DECLARED, Page

HOME, LESSONS = "app", "lessons"


@dataclass(frozen=True)
class MenuGroup:
    """A group of the menu."""

    name: str  # its heading
    description: str  # what is in it, in a line
    folded: bool = False  # whether a click opens it


GROUPS = (
    MenuGroup("Learn", "from a map to its meaning"),
    MenuGroup("Explore", "one sentence, every head"),
    MenuGroup("Models", "train, and tell apart"),
    MenuGroup("Research", "what was measured, and runs of your own", folded=True),
)
"""The menu from its top."""
ENTRIES = {"cross_attention": ("Heads", ":material/grid_view:")}
"""Names and icons of the menu's entries with several pages, by the one that leads them."""


@cache
def script(name: str) -> str:
    """The script of a page, or of a section's page."""
    page = name.partition("/")[0]
    return "app.py" if page == HOME else f"pages/{page}.py"


def in_order(pages: dict[str, Page], before: str = "") -> dict[str, Page]:
    """Pages as a reader sees them; of those that follow one page, that with the shortest way on is
    first.

    ValueError if one follows no page.
    """
    for name, page in pages.items():
        if page.follows not in ("", *pages):
            raise ValueError(f"{name}.py follows {page.follows}, which is no page.")
    next_ones = [name for name, page in pages.items() if page.follows == before]
    branches = [{name: pages[name], **in_order(pages, name)} for name in sorted(next_ones)]
    return {name: page for branch in sorted(branches, key=len) for name, page in branch.items()}


PAGES = in_order({page.script: page for page in DECLARED})
"""Every page by the name of its script, in the order of reading."""
VIEWS = tuple(
    dict.fromkeys(view for page in PAGES.values() for view in (*page.sections, *page.ways))
)
"""What an address may say that a page shows."""


class Place(NamedTuple):
    """A page or a section, as it stands among the others."""

    name: str  # in its page's switch, or in the menu
    title: str  # as a link calls it: `Training: loss`
    draws: str  # whose pictures it shows, if not those of the model that is chosen in the menu
    export: bool  # whether it offers one export for all its pictures
    after: str  # the place that a reader would want after it: the next section, then the next page


PLACES = dict[str, Place]()
"""Every page and every section by its name, `training` and `training/loss`, in the order of
reading."""
for _page, _next in zip(PAGES, [*[*PAGES][1:], *PAGES], strict=False):
    _own = PAGES[_page]
    PLACES[_page] = Place(_own.name, _own.name, _own.draws, _own.export, _next)
    _after = [*(f"{_page}/{view}" for view in _own.sections), _next][1:]
    for (_view, _part), _following in zip(_own.sections.items(), _after, strict=True):
        _shared = _part.draws or _own.draws, _part.export or _own.export
        PLACES[f"{_page}/{_view}"] = Place(
            _part.name, f"{_own.name}: {_part.name}", *_shared, _following
        )


@cache
def at(
    page: str,  # as in `PAGES`
    view: str | None,  # the value of `view` in the address
) -> str:
    """The name of the section that an address shows; of the page if it has none."""
    sections = PAGES[page].sections
    if not sections:
        return page
    return f"{page}/{view if view in sections else next(iter(sections))}"


@cache
def entries(group: str) -> tuple[tuple[str, ...], ...]:
    """The entries of a group of the menu: pages that are looked at together, their leader first."""
    leaders = [name for name, page in PAGES.items() if page.group == group and not page.beside]
    return tuple(
        (name, *(follower for follower, page in PAGES.items() if page.beside == name))
        for name in leaders
    )


@cache
def beside(page: str) -> tuple[str, ...]:
    """The pages that are looked at together with a page, itself among them.

    Empty if there is no other.
    """
    entry_of_page = next(entry for entry in entries(PAGES[page].group) if page in entry)
    return entry_of_page if len(entry_of_page) > 1 else ()
