"""The front end as text: one ES module and one style sheet a view, joined from `widgets/`.

Neither anywidget nor Panel resolves a relative import, and a `data:` URL is refused by strict
content policies, so an entry and what it imports are written into one scope, dependencies first.
That asks little of the files: imports are named, one statement a line group, without renaming;
exports stand before a declaration; a top-level name occurs once in everything that is joined.
"""

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
_FOLDERS = (_PACKAGE / "_widgets", _PACKAGE.parent / "widgets")  # the wheel, then a checkout

_IMPORT = re.compile(
    r'^import \{(?P<names>[^}]*)\} from "\./(?P<file>[\w-]+\.js)";\n', re.MULTILINE
)
_SHEET = re.compile(r'^@import "\./(?P<file>[\w-]+\.css)";$', re.MULTILINE)
_OTHER_IMPORT = re.compile(r"^(import\b|export\b.*\bfrom\b).*$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)
_DECLARED = re.compile(
    r"^(?P<export>export )?(?:async )?(?:const|let|class|function\*?) (?P<name>[\w$]+)",
    re.MULTILINE,
)


@cache
def source(name: str) -> str:
    """Return the ES module `name`, as `tree.js`, with everything it imports.

    Reads files once a process and name.

    Raises:
        FileNotFoundError: neither the wheel nor the checkout has the file.
        ValueError: an import of another form, a cycle, a name that a module does not export, or
            one that two modules declare.
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
    """Return the shared style sheet and that of the view `name`, as `tree.css`, in one text.

    A line `@import "./FILE.css";` becomes that file.

    Raises:
        FileNotFoundError: neither the wheel nor the checkout has a file.
    """
    return f"{_sheet('theme.css')}\n{_sheet(name)}"


def _sheet(name: str) -> str:
    text = _find(name).read_text(encoding="utf-8")
    return _SHEET.sub(lambda match: _sheet(match["file"]), text)


def _find(name: str) -> Path:
    for folder in _FOLDERS:
        if (path := folder / name).is_file():
            return path
    looked = " and ".join(str(folder) for folder in _FOLDERS)
    raise FileNotFoundError(f"{name} of the front end is in neither of {looked}")


def _collect(name: str, modules: dict[str, str], above: tuple[str, ...]) -> None:
    """Add `name` to `modules`, after everything that it imports."""
    if name in above:
        raise ValueError(f"modules import each other: {' → '.join((*above, name))}")
    if name in modules:
        return
    text = _find(name).read_text(encoding="utf-8")
    for match in _IMPORT.finditer(text):
        _collect(match["file"], modules, (*above, name))
        exported = {m["name"] for m in _DECLARED.finditer(modules[match["file"]]) if m["export"]}
        wanted = {word for word in re.split(r"[\s,]+", match["names"]) if word}
        if missing := wanted - exported:
            raise ValueError(
                f"{match['file']} does not export {sorted(missing)}, which {name} imports"
            )
    if other := _OTHER_IMPORT.search(_IMPORT.sub("", text)):
        raise ValueError(
            f'{name}: cannot join {other[0]!r}; write import {{ names }} from "./file.js";'
        )
    modules[name] = text
