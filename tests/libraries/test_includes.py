"""Which files a source may include, where the compiler does not tell."""

from pathlib import Path

from accel_lab.libraries.jit.includes import includes_of


def test_includes_are_followed_through_files_and_folders(tmp_path: Path) -> None:
    here, cuda = tmp_path / "here", tmp_path / "cuda"
    for folder in (here / "sub", cuda):
        folder.mkdir(parents=True)
    (here / "a.h").write_text('#include "sub/b.h"\n')
    (here / "sub" / "b.h").write_text('#  include "c.h" // beside it\n#inclu\\\nde <a.h>\n')
    (here / "sub" / "c.h").write_text("")
    (cuda / "half.h").write_text('#include "deep.h"\n')
    absolute = tmp_path / "absolute.h"
    absolute.write_text("#include KNOWN_LATER\n")
    source = '#include <half.h>\n#include "a.h"\n#include <mine.h>\n'
    found = includes_of([source, "#include <none.h>"], {"mine.h"}, [str(here)], [str(cuda)])
    names = ("here/a.h", "here/half.h", "cuda/half.h", "here/none.h", "cuda/none.h")
    assert {*found.paths} == {
        *(str(tmp_path / name) for name in names),
        *(str(here / "sub" / name) for name in ("b.h", "c.h", "a.h")),
    }
    assert found.whole
    through = includes_of([f'#include "{absolute}"'], (), [str(here)], [str(cuda)])
    assert (through.paths, through.whole) == ([str(absolute)], False)


def test_what_is_only_asked_for_counts_too(tmp_path: Path) -> None:
    asks = '#if __has_include("later.h")\n#include "later.h"\n#endif\n'
    found = includes_of([asks], (), [str(tmp_path)], ())
    assert found.paths == [str(tmp_path / "later.h")]
    assert found.whole
    assert includes_of(["void f();"], (), [str(tmp_path)], ()) == ([], True)
