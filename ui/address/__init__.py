"""The visitor's view of a page, as one value and as an address."""

from ui.address.state import State

__all__ = ["State"]
