"""The documentation site: whole, with what the notebooks print, and nothing from elsewhere."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from tests.project import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.whole, pytest.mark.timeout(900)]

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FRAGMENTS = ROOT / "docs" / "changelog.d"  # of the changelog to come, which a release takes in
SOURCES = [one for one in (ROOT / "docs").rglob("*.md") if FRAGMENTS not in one.parents] + NOTEBOOKS
BUILDING = ROOT / "docs" / "site.md"
HOME = "docs/index.html"
PHONE = 390  # pixels
SEARCHED = "StaleRef"


class Tag(NamedTuple):
    """An opening tag, and whether it stands in the list of pages in the margin."""

    name: str
    values: dict[str, str]
    in_margin: bool


class Page(HTMLParser):
    """The tags of one built page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tags: list[Tag] = []
        self._margin = 0  # the open <div>s from the list's own on
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "div" and (self._margin or "sidebar-tree" in values.get("class", "").split()):
            self._margin += 1
        self.tags.append(Tag(tag, values, self._margin > 0))

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._margin:
            self._margin -= 1

    @functools.cached_property
    def ids(self) -> set[str]:
        return {tag.values["id"] for tag in self.tags if "id" in tag.values}

    def links(self, *, in_margin: bool = False) -> Iterator[str]:
        for tag in self.tags:
            if tag.name == "a" and "href" in tag.values and (tag.in_margin or not in_margin):
                yield tag.values["href"]

    def loads(self) -> Iterator[str]:
        """Yield the address of everything that a browser fetches to show the page."""
        for tag in self.tags:
            for name in ("src", "srcset", "data"):
                if name in tag.values:
                    yield tag.values[name]
            if tag.name == "link" and tag.values["rel"] not in {"next", "prev", "index", "search"}:
                yield tag.values["href"]

    def leads_to(self, link: str) -> Path:
        path = unquote(urlsplit(link).path)
        return _resolved(self.path.parent / path) if path else self.path


@functools.cache
def _resolved(path: Path) -> Path:
    return path.resolve()


@functools.cache
def _is_there(path: Path) -> bool:
    return path.is_file()


def build(source: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """Build as `docs/site.md` says."""
    said = re.search(r"sphinx-build (.+) build/site$", BUILDING.read_text(), re.MULTILINE)
    assert said
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", *said[1].split(), str(to)],
        cwd=source,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site").resolve()
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def built(site: Path, source: Path) -> Path:
    return site / source.relative_to(ROOT).with_suffix(".html")


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).netloc) or urlsplit(link).scheme not in {"", "data"}


def test_every_page_is_in_the_margin(site: Path, pages: dict[Path, Page]) -> None:
    home = pages[site / HOME]
    listed = {home.leads_to(link) for link in home.links(in_margin=True)}
    assert listed == {built(site, source) for source in SOURCES} - {home.path}


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Page]) -> None:
    followed = 0
    for page in pages.values():
        for link in page.links():
            if is_elsewhere(link):
                continue
            path, anchor = page.leads_to(link), unquote(urlsplit(link).fragment)
            assert _is_there(path), f"{page.path}: {link}"
            if anchor and path in pages:
                assert anchor in pages[path].ids, f"{page.path}: {link}"
            followed += 1
    assert followed > len(pages)


def test_front_door_opens_on_the_first_page(site: Path, pages: dict[Path, Page]) -> None:
    (refresh,) = (
        tag.values["content"]
        for tag in pages[site / "index.html"].tags
        if tag.values.get("http-equiv") == "refresh"
    )
    assert refresh == f"0; url={HOME}"


def test_page_loads_only_what_lies_beside_it(site: Path, pages: dict[Path, Page]) -> None:
    for page in pages.values():
        for load in page.loads():
            assert not is_elsewhere(load), f"{page.path}: {load}"
            assert load.startswith("data:") or page.leads_to(load).is_file(), load
    sheets = list(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", sheet.read_text()), sheet


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_its_cells_print(
    site: Path, pages: dict[Path, Page], notebook: Path
) -> None:
    classes = [
        set(tag.values.get("class", "").split()) for tag in pages[built(site, notebook)].tags
    ]
    sources = [
        "".join(cell["source"])
        for cell in json.loads(notebook.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert sum("cell_input" in one for one in classes) == len(sources)
    printing = sum(bool(re.search(r"^ *print\(", source, re.MULTILINE)) for source in sources)
    assert sum("cell_output" in one for one in classes) > printing > 0


def test_every_mistake_is_named_and_ends_the_build(tmp_path: Path) -> None:
    docs, notebooks = tmp_path / "docs", tmp_path / "notebooks"
    shutil.copytree(ROOT / "docs" / "site", docs / "site")
    shutil.copy(ROOT / "docs" / "conf.py", docs)
    dead = "[a page](nowhere.md), [a heading](#nothing)"
    (docs / "index.md").write_text(f"# Title\n\n{dead}\n\n<!-- {{toctree}}\n/notebooks/one\n-->\n")
    (docs / "lonely.md").write_text("# A page in no list\n")
    notebooks.mkdir()
    (notebooks / "one.ipynb").write_text(json.dumps(_notebook("1 / 0")))
    done = build(tmp_path, tmp_path / "built")
    assert done.returncode != 0
    for named in ("'nowhere.md'", "'nothing'", "lonely.md", "ZeroDivisionError"):
        assert named in done.stderr


def _notebook(code: str) -> dict[str, Any]:
    cells = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# One"},
        {
            "cell_type": "code",
            "id": "code",
            "metadata": {},
            "source": code,
            "outputs": [],
            "execution_count": None,
        },
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.browser
def test_browser_reads_it_on_a_phone_in_the_dark_and_finds_a_word(site: Path, address: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    asked: set[str] = set()
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        phone = browser.new_page(viewport={"width": PHONE, "height": 844}, color_scheme="dark")
        phone.on("request", lambda request: asked.add(request.url))
        for source in SOURCES:
            phone.goto(address + str(built(site, source).relative_to(site)))
            widths = phone.locator("html, .content").evaluate_all(
                "all => all.map(one => one.scrollWidth)"
            )
            assert max(widths) <= PHONE, source
        background = "getComputedStyle(document.body).backgroundColor"
        dark = phone.evaluate(background)
        phone.emulate_media(color_scheme="light")
        assert phone.evaluate(background) != dark

        phone.goto(f"{address}search.html?q={SEARCHED}")
        found = phone.locator("#search-results li a")
        expect(found.filter(has_text="Errors").first).to_be_visible()
        browser.close()
    assert asked
    assert {url for url in asked if not url.startswith((address, "data:"))} == set()
