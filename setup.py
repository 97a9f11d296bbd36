"""What pip installs: the packages, lists of words, and inside one of them the scripts of living
pages.

These stand in `static/` beside app.py, which serves them to browsers. pyproject.toml cannot say so:
where it looks for packages, it drops a folder that is mapped onto another.
"""

from setuptools import find_packages, setup

ROOMS = ("transformer", "explorer")
APP = ("explorer.app", "explorer.app.*")  # starts from this folder, with its pages and models
SCRIPTS = "explorer.linked.static"

setup(
    packages=[
        *find_packages(
            include=[name for room in ROOMS for name in (room, f"{room}.*")], exclude=APP
        ),
        SCRIPTS,
    ],
    package_dir={SCRIPTS: "static"},
    # not plotly.js, which only the app needs
    package_data={
        SCRIPTS: ["manifest.json", "*-*/*/*.js", "*-*/*/*.css", "*-*/*/*.wasm"],
        "explorer.lenses.words": ["*.txt"],
    },
)
