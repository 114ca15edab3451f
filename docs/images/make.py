"""Take the pictures of the first minute: `python -m docs.images.make`, at the root.

It opens the notebook in a real JupyterLab and does what its reader does. It needs what the browser
tests need: the `test` and `lab` extras, and Chromium.
"""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.jupyter import JupyterLab, Notebook, Tab, chromium

IMAGES = Path(__file__).parent
ROOT = IMAGES.parents[1]
NAME = "00-first-minute.ipynb"
SIZE = (1400, 900)
COLOURS = 256
RUNNING_MS = 3_000
"""How long a bar has grown when it is shown, and the lab goes on when all is over."""

# A device recovers before a picture is taken: the lab holds still at the first word of the crash.
HOLD = """() => {
    const said = document.querySelector('.al-lab-crash-said');
    const hold = new MutationObserver(() => {
        if (!said.textContent) return;
        hold.disconnect();
        document.querySelector('.al-lab-bar [data-do="pause"]').click();
    });
    hold.observe(said, { childList: true, characterData: true, subtree: true });
}"""
SHOW = """([index, block]) => {
    const { shell } = window.jupyterapp;
    const panel = [...shell.widgets('main')].find(({ context }) => context);
    shell.activateById(panel.id);
    panel.content.widgets[index].node.scrollIntoView({ block });
}"""


class Reader:
    """Whoever reads the notebook, and takes a picture now and then."""

    def __init__(self, page: Page, notebook: Notebook) -> None:
        self._page = page
        self.notebook = notebook
        self._pictures = 0

    def look(self, cell: int, block: str = "nearest") -> None:
        """Go to a cell of the notebook."""
        self._page.evaluate(SHOW, [cell, block])

    def run(self, cell: int) -> None:
        """Run a cell to its end."""
        self.look(cell)
        self.notebook.run(cell)
        self.notebook.wait(cell, 60)

    def picture(self) -> None:
        """Take the next picture."""
        self._pictures += 1
        path = IMAGES / f"first-minute-{self._pictures}.png"
        shot = Image.open(BytesIO(self._page.screenshot())).convert("RGB")
        shot.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB")


def main() -> None:
    """Take all six."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = JupyterLab(Path(folder) / "jupyter")
        browser = chromium(playwright)
        try:
            shutil.copy(ROOT / "notebooks" / NAME, jupyter.notebooks)
            tab = Tab(browser)
            _read(jupyter, tab)
            tab.check()
        finally:
            browser.close()
            jupyter.close()


def _read(jupyter: JupyterLab, tab: Tab) -> None:
    page = tab.page
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
    notebook = Notebook.at(jupyter, tab, NAME)
    reader = Reader(page, notebook)
    lab = page.locator(".al-ext-panel")
    open_, make, iterate, work, again, _ = notebook.code()
    expect(lab.locator(".al-ext-note")).to_be_visible()
    reader.picture()  # the prepared screen
    reader.run(open_)
    reader.run(make)
    expect(lab.locator(".al-lab-timeline")).to_be_visible()
    page.wait_for_timeout(RUNNING_MS)
    reader.picture()  # after the first cell
    reader.run(iterate)
    reader.look(work, "end")
    notebook.run(work)
    expect(lab.locator(".al-lab-running")).to_be_visible()
    page.wait_for_timeout(RUNNING_MS)
    reader.picture()  # running
    page.evaluate(HOLD)
    lab.get_by_role("button", name="Crash it").click()
    go_on = lab.locator(".al-lab-bar").get_by_role("button", name="Follow live")
    expect(go_on).to_be_visible()
    reader.picture()  # the crash
    go_on.click()
    expect(lab.locator(".al-lab-crash-said")).to_contain_text("3 arrays rebuilt")
    reader.look(again, "end")
    page.wait_for_timeout(RUNNING_MS)
    reader.picture()  # recovered
    reader.run(again)
    assert notebook.printed(again) == notebook.printed(iterate)
    reader.look(again, "end")
    page.wait_for_timeout(RUNNING_MS)
    reader.picture()  # the same number


if __name__ == "__main__":
    main()
