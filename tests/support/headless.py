"""Where the Chromium that the tests drive is."""

import shutil

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The path of the browser, None if there is none. The headless shell does less work for a page."""
