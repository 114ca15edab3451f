"""A real JupyterLab and a real Chromium, as two small objects for the tests in this folder."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Route,
    ViewportSize,
    expect,
)

from tests.ports import free_port
from tests.with_parent import with_parent

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "screenshots"
PROGRAM = """
from {module} import main
from tests.ports import give_to_kernels
give_to_kernels()
main()
"""
STARTUP_S = 60.0
PATIENCE_S = 30.0
"""How long whatever comes may take on a machine that others use too."""
WINDOW: ViewportSize = {"width": 1280, "height": 900}
CLOSED_SOON = (
    "Canceled future for create_subshell_request",
    "Cannot read properties of null (reading 'promise')",
)
"""What JupyterLab says of a notebook that is closed while it still prepares the kernel's comms, and
of a question whether to save that is answered while it still comes up."""

# JupyterLab asks at its first start whether it may fetch news; nothing here may leave the machine.
_NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}
# Its debugger logs an error whenever a notebook is closed while it still asks the kernel.
_NO_DEBUGGER = {"disabledExtensions": {"@jupyterlab/debugger-extension": True}}
_NEWS_FILE = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
# What axe says, and no more: its whole report on a page is megabytes for all on the way here.
_AXE = """async (views) => {
    const found = await axe.run({ include: views }, { resultTypes: ['violations', 'incomplete'] });
    const said = [...found.violations, ...found.incomplete].flatMap(({ id, nodes }) =>
        nodes.flatMap(({ html, any, all, none }) => {
            const checks = [...any, ...all, ...none];
            return (checks.length ? checks : [{ message: '' }]).map(
                ({ message }) => ({ rule: id, html, message }));
        }));
    return [said, found.passes.map(({ id }) => id)];
}"""


class JupyterLab:
    """A JupyterLab process of its own, with all that it writes under `folder`."""

    module, app, page = "jupyterlab.labapp", "LabApp", "lab/tree"
    """What starts it, by which name it is configured, and the folder of a notebook's URL."""

    def __init__(self, folder: Path) -> None:
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir(parents=True)
        self.token = secrets.token_hex(16)
        self.port = free_port()
        write_json(folder / "settings" / _NEWS_FILE, _NO_NEWS)
        write_json(folder / "config" / "labconfig" / "page_config.json", _NO_DEBUGGER)
        install_extension(folder / "data" / "labextensions")
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            with_parent(sys.executable, "-c", PROGRAM.format(module=self.module), *self._options()),
            cwd=self.notebooks,
            env=os.environ | _places(folder),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        wait_until(lambda: self.api("api/status") is not None, "JupyterLab answers", STARTUP_S)

    def _options(self) -> list[str]:
        return [
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.notebooks}",
            f"--{self.app}.expose_app_in_browser=True",
        ]

    def api(self, path: str, method: str = "GET") -> Any:
        """Call the server; None while it does not answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}",
            method=method,
            headers={"Authorization": f"token {self.token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
                body = answer.read()
        except OSError:
            return None
        return json.loads(body) if body else {}

    def end_kernels(self) -> None:
        """Shut every kernel down, so that the next notebook gets a new one."""
        for session in self.api("api/sessions"):
            self.api(f"api/sessions/{session['id']}", "DELETE")

    def close(self) -> None:
        """End the server and everything it started."""
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
        self._log.close()


class Tab:
    """A browser tab that remembers what went wrong in it and what it asked of other machines."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context = browser.new_context(viewport=WINDOW, **options)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.strangers: list[str] = []
        self.page.on("pageerror", lambda error: self._fail(str(error), error.stack or ""))
        self.page.on("console", self._hear)
        self.page.route("**/*", self._guard)

    def _fail(self, error: str, stack: str) -> None:
        ours = "accel" in stack
        if ours or not any(known in error for known in CLOSED_SOON):
            self.errors.append(f"{error}\n{stack}")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _guard(self, route: Route) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            route.fallback()
        else:
            self.strangers.append(url)
            route.abort()

    def check(self) -> None:
        """Assert that all was quiet since the last time, and that nobody else was asked."""
        errors, self.errors = self.errors, []
        strangers, self.strangers = self.strangers, []
        assert (errors, strangers) == ([], [])


class Notebook:
    """One notebook, open in JupyterLab with a kernel of its own."""

    def __init__(self, lab: JupyterLab, tab: Tab, source: Path | list[str]) -> None:
        self._lab, self.page = lab, tab.page
        name = f"{secrets.token_hex(4)}.ipynb"
        if isinstance(source, Path):
            shutil.copy(source, lab.notebooks / name)
        else:
            write_json(lab.notebooks / name, document(source))
        if not self.page.url.startswith(f"http://127.0.0.1:{lab.port}/lab"):
            self.page.goto(f"http://127.0.0.1:{lab.port}/lab?reset&token={lab.token}")
            self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget")
        self.page.evaluate(
            "(path) => void window.jupyterapp.commands.execute('docmanager:open', { path })", name
        )
        self._wait_for_kernel(name)

    @classmethod
    def at(cls, lab: JupyterLab, tab: Tab, name: str) -> "Notebook":
        """Open the page at a notebook of the server's, as a URL does."""
        notebook = cls.__new__(cls)
        notebook._lab, notebook.page = lab, tab.page
        tab.page.goto(f"http://127.0.0.1:{lab.port}/{lab.page}/{name}?token={lab.token}")
        notebook._wait_for_kernel(name)
        return notebook

    def _wait_for_kernel(self, name: str) -> None:
        self.page.wait_for_function(
            """(path) => {
                const panel = window.jupyterapp?.shell?.currentWidget;
                return panel?.context?.path === path
                    && panel.sessionContext?.session?.kernel?.status === 'idle';
            }""",
            arg=name,
            timeout=60_000,
        )

    def close(self) -> None:
        """Close the notebook without saving it, and end its kernel."""
        # Again and again: a cell's last message may still come, and then JupyterLab asks.
        self.page.wait_for_function(
            """() => {
                document.querySelector('.jp-Dialog .jp-mod-reject')?.click();
                for (const panel of window.jupyterapp.shell.widgets('main')) {
                    if (!panel.context) continue;
                    panel.context.model.dirty = false;
                    panel.close();
                }
                return !document.querySelector('.jp-NotebookPanel');
            }""",
            polling=100,
        )
        self._lab.end_kernels()

    def run(self, cell: int) -> None:
        """Start a cell; does not wait for it. Commands, because clicks get lost at times."""
        self.page.evaluate(
            """(index) => {
                const panel = window.jupyterapp.shell.currentWidget;
                panel.content.activeCellIndex = index;
                panel.content.deselectAll();
                void window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            cell,
        )

    def run_all(self) -> None:
        """Start every cell; does not wait."""
        self.page.evaluate(
            "() => void window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )

    def wait(self, cell: int, timeout_s: float = 30) -> None:
        """Wait until a cell has run, and assert that it raised nothing."""
        self.page.wait_for_function(
            """(index) => {
                const model = window.jupyterapp.shell.currentWidget.content.widgets[index].model;
                return model.executionCount !== null && model.executionState !== 'running';
            }""",
            arg=cell,
            timeout=timeout_s * 1000,
        )
        errors = self.page.evaluate(
            """(index) => window.jupyterapp.shell.currentWidget.content.widgets[index].model
                .outputs.toJSON().filter((output) => output.output_type === 'error')""",
            cell,
        )
        shown = [line for error in errors for line in error["traceback"]]
        assert not errors, "\n".join([f"cell {cell}:", *shown])

    def reload(self) -> None:
        """Save the notebook and load the page anew, with the same kernel."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        self.open_again()

    def open_again(self) -> None:
        """Load the page anew, with the notebook as it was saved last."""
        name = self.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
        self.page.goto(
            f"http://127.0.0.1:{self._lab.port}/lab/tree/{name}?reset&token={self._lab.token}"
        )
        self._wait_for_kernel(name)

    def code(self) -> dict[int, str]:
        """Return the source of every code cell by its number."""
        cells: list[str | None] = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets.map(({ model }) =>
                model.type === 'code' ? model.sharedModel.getSource() : null)"""
        )
        return {number: source for number, source in enumerate(cells) if source is not None}

    def active_cell(self) -> list[object]:
        """Return what a leaked key would change: the cells, the active one, and the mode."""
        found: list[object] = self.page.evaluate(
            """() => {
                const { content } = window.jupyterapp.shell.currentWidget;
                return [content.widgets.length, content.activeCellIndex, content.mode];
            }"""
        )
        return found

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme, and wait for its style sheet and for the splash to go."""
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            name,
        )
        self.page.wait_for_function(
            """(theme) => document.body.dataset.jpThemeName === theme
                && !document.getElementById('jupyterlab-splash')""",
            arg=name,
        )

    @property
    def view(self) -> Locator:
        """The first view of accel_lab in the notebook."""
        return self.page.locator(".jp-Notebook .accel-lab").first

    def expect(self, selector: str, timeout_s: float = PATIENCE_S) -> Any:
        """Return Playwright's `expect` for `selector` in the view."""
        expect.set_options(timeout=timeout_s * 1000)
        return expect(self.view.locator(selector))

    def printed(self, cell: int) -> str:
        """Return what a cell printed on its standard output so far."""
        text: str = self.page.evaluate(
            """(index) => window.jupyterapp.shell.currentWidget.content.widgets[index].model
                .outputs.toJSON().filter((output) => output.name === 'stdout')
                .map((output) => [output.text].flat().join('')).join('')""",
            cell,
        )
        return text

    def screenshot(self, name: str) -> None:
        """Save a picture of the view for people to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.view.screenshot(path=SCREENSHOTS / f"{name}.png")


def install_extension(folder: Path) -> None:
    """Have JupyterLab find the extension, as it is in the checkout."""
    front_end, own = ROOT / "widgets", folder / "accel-lab"
    own.mkdir(parents=True)
    shutil.copy(front_end / "labextension" / "package.json", own)
    (own / "static").symlink_to(front_end)
    schemas = own / "schemas" / "accel-lab"
    schemas.mkdir(parents=True)
    shutil.copy(front_end / "labextension" / "schema.json", schemas / "plugin.json")


def document(cells: list[str]) -> dict[str, Any]:
    """Return a notebook of code cells as its file holds it."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": cell,
            }
            for number, cell in enumerate(cells)
        ],
    }


def axe(views: Locator) -> tuple[list[dict[str, str]], set[str]]:
    """Return what axe finds wrong with the views, or cannot tell, and the rules that they keep."""
    views.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    said, kept = views.evaluate_all(_AXE)
    return said, set(kept)


def chromium(playwright: Playwright) -> Browser:
    """Start the machine's own Chromium; Playwright's is never downloaded."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    path = shutil.which("chromium") or shutil.which("google-chrome")
    return playwright.chromium.launch(
        executable_path=path, args=["--disable-dev-shm-usage", "--disable-gpu"]
    )


def write_json(path: Path, value: object) -> None:
    """Write a file and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def answers(url: str) -> bool:
    """Whether a server answers at `url` at all."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S):  # noqa: S310  (a test's own server)
            return True
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Ask again and again, for servers that tell nobody when they are ready.

    Raises:
        TimeoutError: it took longer than `timeout_s`.
    """
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{timeout_s:g} s passed before this: {what}")
        time.sleep(0.1)


def _places(folder: Path) -> dict[str, str]:
    return {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_PREFER_ENV_PATH": "0",  # else an extension that pip has installed wins
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(folder / "home"),
    }
