"""What pip installs: the packages, and inside one of them the scripts of living pages.

These stand in `static/` beside app.py, which serves them to browsers. pyproject.toml cannot say so: where it
looks for packages, it drops a folder that is mapped onto another.
"""

from setuptools import find_packages, setup

ROOMS = ("transformer", "lenses", "figures", "linked")
SCRIPTS = "linked.static"

setup(
    packages=[*find_packages(include=[name for room in ROOMS for name in (room, f"{room}.*")]), SCRIPTS],
    package_dir={SCRIPTS: "static"},
    package_data={SCRIPTS: ["*-*/*.js", "*-*/*.css"]},  # and not plotly.js, which only the app needs
)
