"""Joining the front end into one module."""

import posixpath
import re
from pathlib import Path

import pytest

from accel_lab.views.widget import assets

WIDGETS = Path(__file__).parents[3] / "widgets"
FILES = {path.relative_to(WIDGETS).as_posix(): path.read_text() for path in WIDGETS.rglob("*.js")}
VIEWS = sorted(
    name.removesuffix(".js") for name, text in FILES.items() if "export default standalone(" in text
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Look for modules in an empty folder."""
    monkeypatch.setattr(assets, "_FOLDERS", (tmp_path,))
    return tmp_path


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)


def write_folders(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def join(name: str) -> str:
    return assets.source.__wrapped__(name)  # past the cache


def test_the_tree_is_one_module_without_relative_imports() -> None:
    text = assets.source("tree/tree.js")
    assert "export default standalone(mountTree);" in text
    assert not re.search(r"^import\b", text, re.MULTILINE)
    assert text.count("export ") == 2  # `html` for the tests, and the default


@pytest.mark.parametrize("view", VIEWS)
def test_every_rule_of_the_style_sheets_stays_inside_the_view(view: str) -> None:
    text = re.sub(r"/\*.*?\*/", "", assets.style(f"{view}.css"), flags=re.DOTALL)
    frames = re.compile(r"@keyframes [\w-]+ \{(?:[^{}]*\{[^{}]*\})*\s*\}")
    assert all("accel-lab-" in frame for frame in frames.findall(text))
    selectors = re.findall(r"([^{};]+)\{", frames.sub("", text))
    rules = [part.strip() for s in selectors if "@" not in s for part in s.split(",")]
    assert len(rules) > 50
    assert [rule for rule in rules if not rule.startswith(".accel-lab")] == []


def test_dependencies_come_first_and_once(folder: Path) -> None:
    write(
        folder,
        a='import { b } from "./b.js";\nimport { c } from "./c.js";\nexport default b + c;\n',
        b='import { c } from "./c.js";\nexport const b = c + 1;\n',
        c="export const c = 1;\n",
    )
    text = join("a.js")
    assert re.findall(r"^(?:const|export).*", text, re.MULTILINE) == [
        "const c = 1;",
        "const b = c + 1;",
        "export default b + c;",
    ]


def test_files_are_joined_from_folders_each_once_by_its_path(folder: Path) -> None:
    write_folders(
        folder,
        {
            "view/view.js": 'import { b } from "./rows.js";\n'
            'import { c } from "../shared/dom.js";\n',
            "view/rows.js": 'import { c } from "../view/../shared/dom.js";\nexport const b = c;\n',
            "shared/dom.js": "export const c = 1;\n",
        },
    )
    text = join("view/view.js")
    assert re.findall(r"^// .*", text, re.MULTILINE) == [
        "// shared/dom.js",
        "// view/rows.js",
        "// view/view.js",
    ]
    assert "import" not in text


def test_files_of_one_name_in_two_folders_are_two_files(folder: Path) -> None:
    files = {
        "a/draw.js": 'import { b } from "../b/draw.js";\nexport const a = b;\n',
        "b/draw.js": "export const b = 1;\n",
    }
    write_folders(folder, files)
    assert join("a/draw.js").count("draw.js\n") == 2
    write_folders(folder, files | {"b/draw.js": "export const b = 1;\nconst a = 2;\n"})
    with pytest.raises(ValueError, match=r"'a' is declared in b/draw\.js and in a/draw\.js"):
        join("a/draw.js")
    write_folders(folder, files | {"b/draw.js": "export const c = 1;\n"})
    missing = r"b/draw\.js does not export \['b'\], which a/draw\.js imports"
    with pytest.raises(ValueError, match=missing):
        join("a/draw.js")
    back = 'import { a } from "../a/draw.js";\nexport const b = a;\n'
    write_folders(folder, files | {"b/draw.js": back})
    with pytest.raises(ValueError, match=r"a/draw\.js → b/draw\.js → a/draw\.js"):
        join("a/draw.js")


def test_names_may_be_imported_over_several_lines(folder: Path) -> None:
    write(
        folder,
        a='import {\n  b,\n  c,\n} from "./b.js";\n',
        b="export function b() {}\nexport class c {}\n",
    )
    assert "import" not in join("a.js")


@pytest.mark.parametrize(
    "line",
    [
        'import b from "./b.js";',
        'import * as b from "./b.js";',
        'import { b } from "https://example.org/b.js";',
        'import "./b.js";',
        'export { b } from "./b.js";',
    ],
)
def test_an_import_of_another_form_is_refused(folder: Path, line: str) -> None:
    write(folder, a=f"{line}\n", b="export const b = 1;\n")
    with pytest.raises(ValueError, match=r"a\.js: cannot join"):
        join("a.js")


def test_a_name_that_is_not_exported_is_refused(folder: Path) -> None:
    write(folder, a='import { b, hidden } from "./b.js";\n', b="export const b = 1;\nlet hidden;\n")
    with pytest.raises(ValueError, match=r"b\.js does not export \['hidden'\]"):
        join("a.js")


def test_a_renamed_import_is_refused(folder: Path) -> None:
    write(folder, a='import { b as c } from "./b.js";\n', b="export const b = 1;\n")
    with pytest.raises(ValueError, match="does not export"):
        join("a.js")


def test_one_name_in_two_modules_is_refused(folder: Path) -> None:
    write(
        folder,
        a='import { b } from "./b.js";\nconst same = b;\n',
        b="export const b = 1;\nfunction same() {}\n",
    )
    with pytest.raises(ValueError, match=r"'same' is declared in b\.js and in a\.js"):
        join("a.js")


def test_modules_that_import_each_other_are_refused(folder: Path) -> None:
    write(
        folder,
        a='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./a.js";\nexport const b = 1;\n',
    )
    with pytest.raises(ValueError, match=r"a\.js → b\.js → a\.js"):
        join("a.js")


def test_a_missing_file_names_the_folders_that_were_searched() -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.js .*_widgets and .*widgets"):
        assets.source("missing.js")


def test_a_missing_import_names_who_asks_for_it(folder: Path) -> None:
    write_folders(folder, {"a/a.js": 'import { b } from "../b/b.js";\n'})
    with pytest.raises(FileNotFoundError, match=r"b/b\.js of the front end.*a/a\.js imports it"):
        join("a/a.js")


def test_an_import_from_outside_of_the_front_end_is_refused(folder: Path) -> None:
    write_folders(
        folder,
        {
            "a/a.js": 'import { b } from "../../b.js";\n',
            "a/a.css": '@import "../../b.css";\n',
            "shared/theme.css": "",
        },
    )
    with pytest.raises(ValueError, match=r"a/a\.js imports '\.\./\.\./b\.js', .* outside"):
        join("a/a.js")
    with pytest.raises(ValueError, match=r"a/a\.css imports '\.\./\.\./b\.css', .* outside"):
        assets.style.__wrapped__("a/a.css")


def test_every_file_of_the_front_end_belongs_to_a_view() -> None:
    joined = "".join(assets.source(f"{view}.js") for view in VIEWS)
    own = {name for name in FILES if name.startswith("labextension/")}
    for name in FILES.keys() - own:
        assert f"// {name}\n" in joined


def test_every_kind_of_view_has_its_entry() -> None:
    kinds = ["agents", "canvas", "cells", "collectives", "dashboard", "health", "journal"]
    kinds += [
        "kernels",
        "lab",
        "lab_compact",
        "patterns",
        "sidebar",
        "supervision",
        "timeline",
        "topology",
        "training",
        "tree",
        "values",
        "vram",
    ]
    assert sorted(map(assets.entry, kinds)) == VIEWS


def test_what_views_share_imports_no_view_and_a_view_no_other() -> None:
    upwards = [
        (name, path)
        for name, text in FILES.items()
        for path in re.findall(r'from "(\.\.?/\S+)"', text)
        if _folder(name, path) not in ("shared", name.split("/")[0])
        and not name.startswith(("lab/", "labextension/"))
    ]
    assert upwards == []


def _folder(importer: str, path: str) -> str:
    """Return the folder of the front end in which a relative path ends."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path)).split("/")[0]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_style_sheet_that_asks_for_nothing(view: str) -> None:
    assert not re.search(r"@import|url\(", assets.style(f"{view}.css"))


def test_a_style_sheet_may_take_in_others(folder: Path) -> None:
    write_folders(
        folder,
        {
            "shared/theme.css": "theme",
            "a/a.css": '@import "./b.css";\n@import "../c/c.css";\n\na',
            "a/b.css": "b",
            "c/c.css": "c",
        },
    )
    assert assets.style.__wrapped__("a/a.css") == "theme\nb\nc\n\na"


def test_style_sheets_that_take_in_each_other_are_refused(folder: Path) -> None:
    write_folders(
        folder,
        {
            "a/a.css": '@import "../b/b.css";',
            "b/b.css": '@import "../a/a.css";',
            "shared/theme.css": "",
        },
    )
    with pytest.raises(ValueError, match=r"a/a\.css → b/b\.css → a/a\.css"):
        assets.style.__wrapped__("a/a.css")


def test_what_buttons_have_in_common_stands_in_the_theme_alone() -> None:
    def said(sheet: str, selector: str) -> set[str]:
        """Return what a sheet says of all elements of a class, whatever their state."""
        text = (WIDGETS / sheet).read_text()
        blocks = re.findall(
            rf"^[^@{{}}]*\.{selector}(?:,[^{{}}]*)? \{{([^}}]*)\}}", text, re.MULTILINE
        )
        return {part.strip() for block in blocks for part in block.split(";")} - {""}

    buttons = {
        "lab/bar.css": "al-lab-button",
        "supervision/supervision.css": "al-supervision-button",
        "journal/journal.css": "al-journal-button",
    }
    for sheet, name in buttons.items():
        common = said("shared/theme.css", name)
        assert "border-radius: 6px" in common
        assert not common & said(sheet, name) - {"background: var(--al-bg)"}
