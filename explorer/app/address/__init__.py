"""The visitor's view of a page, as one value and as an address."""

from explorer.app.address.state import State

__all__ = ["State"]
