"""The front end as text: one ES module and one style sheet a view, joined from `widgets/`.

Neither anywidget nor Panel resolves a relative import, and a `data:` URL is refused by strict
content policies, so an entry and what it imports are written into one scope, dependencies first.
That asks little of the files: imports are named, one statement a line group, without renaming, by a
relative path; exports stand before a declaration; a top-level name occurs once in everything that
is joined. Files are named by their path below `widgets/`, as `timeline/mount.js`.
"""

import posixpath
import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_FOLDERS = (_PACKAGE / "_widgets", _PACKAGE.parent / "widgets")  # the wheel, then a checkout
_THEME = "shared/theme.css"

_IMPORT = re.compile(
    r'^import \{(?P<names>[^}]*)\} from "(?P<path>\.\.?/[\w./-]+\.js)";\n', re.MULTILINE
)
_SHEET = re.compile(r'^@import "(?P<path>\.\.?/[\w./-]+\.css)";$', re.MULTILINE)
_OTHER_IMPORT = re.compile(r"^(import\b|export\b.*\bfrom\b).*$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)
_DECLARED = re.compile(
    r"^(?P<export>export )?(?:async )?(?:const|let|class|function\*?) (?P<name>[\w$]+)",
    re.MULTILINE,
)


def entry(view: str) -> str:
    """Return the path of a view's module and style sheet, without `.js` or `.css`.

    A view is named as its folder. A second view of a folder has its own word behind that: `tree` is
    `tree/tree`, `lab_compact` is `lab/compact`.
    """
    folder, _, word = view.partition("_")
    return f"{folder}/{word or folder}"


@cache
def source(name: str) -> str:
    """Return the ES module `name`, as `tree/tree.js`, with everything it imports.

    Reads files once a process and name.

    Raises:
        FileNotFoundError: neither the wheel nor the checkout has the file.
        ValueError: an import of another form or from outside of the front end, a cycle, a name that
            a module does not export, or one that two modules declare.
    """
    modules: dict[str, str] = {}
    _collect(name, modules, above=())
    declared: dict[str, str] = {}
    for file, text in modules.items():
        for match in _DECLARED.finditer(text):
            other = declared.setdefault(match["name"], file)
            if other != file:
                raise ValueError(f"{match['name']!r} is declared in {other} and in {file}")
    parts = [f"// {file}\n{_IMPORT.sub('', text)}" for file, text in modules.items()]
    parts[:-1] = [_EXPORT.sub("", part) for part in parts[:-1]]  # only the entry exports
    return "\n".join(parts)


@cache
def style(name: str) -> str:
    """Return the shared style sheet and the sheet `name`, as `tree/tree.css`, in one text.

    A line `@import "../FOLDER/FILE.css";` becomes that file.

    Raises:
        FileNotFoundError: neither the wheel nor the checkout has a file.
        ValueError: a sheet from outside of the front end, or a cycle.
    """
    return f"{_sheet(_THEME, ())}\n{_sheet(name, ())}"


def _sheet(name: str, above: tuple[str, ...]) -> str:
    _check_cycle(name, above)
    below = (*above, name)
    return _SHEET.sub(
        lambda match: _sheet(_resolve(match["path"], name), below), _read(name, *above[-1:])
    )


def _resolve(path: str, importer: str) -> str:
    """Return where a relative path in `importer` leads, from `widgets/`."""
    name = posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
    if name.startswith("../"):
        raise ValueError(f"{importer} imports {path!r}, which is outside of the front end")
    return name


def _read(name: str, importer: str = "") -> str:
    for folder in _FOLDERS:
        if (path := folder / name).is_file():
            return path.read_text(encoding="utf-8")
    looked = " and ".join(str(folder) for folder in _FOLDERS)
    asks = f"; {importer} imports it" if importer else ""
    raise FileNotFoundError(f"{name} of the front end is in neither of {looked}{asks}")


def _check_cycle(name: str, above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"files import each other: {' → '.join((*above, name))}")


def _collect(name: str, modules: dict[str, str], above: tuple[str, ...]) -> None:
    """Add `name` to `modules`, after everything that it imports."""
    _check_cycle(name, above)
    if name in modules:
        return
    text = _read(name, *above[-1:])
    for match in _IMPORT.finditer(text):
        imported = _resolve(match["path"], name)
        _collect(imported, modules, (*above, name))
        exported = {m["name"] for m in _DECLARED.finditer(modules[imported]) if m["export"]}
        wanted = {word for word in re.split(r"[\s,]+", match["names"]) if word}
        if missing := wanted - exported:
            raise ValueError(f"{imported} does not export {sorted(missing)}, which {name} imports")
    if other := _OTHER_IMPORT.search(_IMPORT.sub("", text)):
        raise ValueError(
            f'{name}: cannot join {other[0]!r}; write import {{ names }} from "./file.js";'
        )
    modules[name] = text
