"""The command line: `accel-lab COMMAND`. Each command imports what it needs when it runs."""

import contextlib
import os
import sys
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from accel_lab.errors import AccelError

app = typer.Typer(
    name="accel-lab",
    help="A supervised actor system that drives GPUs from a Jupyter notebook.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command that the command line names; an AccelError is one line, exit status 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not have every character
    try:
        app()
    except (AccelError, OSError) as error:
        _fail(str(error))


def _shown_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if wanted:
        from accel_lab.doctor.examination import own_version

        typer.echo(f"accel-lab {own_version()}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_shown_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Keep `accel-lab` a group of commands, however few there are."""
    del version


@app.command()
def doctor(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List what this machine has, what it lacks, what that disables and how to get it.

    The exit status is 0 when the host backend can run.
    """
    from accel_lab.doctor import examine

    report = examine()
    if json:
        typer.echo(report.to_json())
    else:
        from rich.console import Console

        Console().print(report, crop=False)
    raise typer.Exit(0 if report.host else 1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    *,
    folder: Annotated[
        Path, typer.Option("--dir", help="The folder to copy the tutorials to.")
    ] = Path("accel-lab-tutorials"),
    browser: Annotated[bool, typer.Option(help="Open a browser, where there is a display.")] = True,
) -> None:
    """Copy the tutorials to a folder of yours, then open JupyterLab on the first of them.

    A file that you changed is never overwritten. Further arguments go to JupyterLab.
    """
    from accel_lab import jupyter, tutorials
    from accel_lab.display.install import pip_install

    if find_spec("jupyterlab") is None:
        _fail(f"JupyterLab is not installed. Install it with: {pip_install('lab')}")
    for path, outcome in tutorials.copy(folder):
        if outcome == "kept":
            original = tutorials.packaged() / path.relative_to(folder)
            typer.echo(f"kept your {path}, which differs from {original}")
    typer.echo(f"Tutorials are in {folder.resolve()}")
    command = jupyter.command(folder, tutorials.FIRST, context.args, browser=browser)
    sys.stdout.flush()
    os.execve(command[0], command, jupyter.environment())  # noqa: S606 - our own Python, no shell


@app.command()
def skills(
    *,
    folder: Annotated[Path, typer.Option("--dir", help="Where your assistant looks.")] = Path(
        ".agents/skills"
    ),
) -> None:
    """Copy accel_lab's skills for coding assistants to a folder of yours.

    A file that you changed is never overwritten.
    """
    from accel_lab import tutorials

    for path, outcome in tutorials.copy(folder, tutorials.packaged_skills()):
        typer.echo(f"{outcome} {path}")


@app.command()
def demo(
    *, backend: Annotated[str, typer.Option(help="auto, cuda, wgpu or host.")] = "auto"
) -> None:
    """Show the quickstart in the terminal: compute, kill the context's process, go on.

    The exit status is 0 if every result was right, before the crash and after it.
    """
    from accel_lab.demo import tour

    raise typer.Exit(0 if tour(backend) else 1)


@app.command()
def dashboard(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for any free one.")
    ] = 5006,
    address: Annotated[str, typer.Option(help="The network interface to listen on.")] = "127.0.0.1",
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-websocket-origin",
            help="Another host name that browsers may use: hub.example.org:443. Repeatable.",
        ),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-user",
            help="Another user of this machine who may look: prometheus. Repeatable.",
        ),
    ] = None,
) -> None:
    """Serve a page that shows all your systems on this machine, until Ctrl+C.

    Metrics for Prometheus are on the same server, at /metrics. The page cannot change a system.
    """
    from accel_lab.display.install import pip_install
    from accel_lab.views.dashboard.dashboard import dashboard_of_all

    if find_spec("panel") is None or find_spec("prometheus_client") is None:
        _fail(f"the dashboard needs Panel. Install it with: {pip_install('lab')}")
    opened = dashboard_of_all(port=port, address=address, origins=origins or (), users=users or ())
    with opened as served:
        typer.echo(f"Dashboard: {served.url}")
        with contextlib.suppress(KeyboardInterrupt):
            served.wait()


@app.command()
def top(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print one snapshot as JSON.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Print one snapshot as tables.")] = False,
    stack: Annotated[
        str, typer.Option(help="Print the Python stacks of a context: gpu0, or lab1/gpu0.")
    ] = "",
    since_s: Annotated[
        float, typer.Option("--since", min=0.0, help="For how many seconds a fault counts.")
    ] = 300.0,
) -> None:
    """Show all your systems on this machine in the terminal: tree, kernels, memory and faults.

    With --json or --once the exit status is for monitoring: 0 when all is well, 1 when something
    failed, 2 when no system was found.
    """
    from accel_lab.top.looker import Looker

    if not (json or once or stack):
        from accel_lab.telemetry.installed import require

        require("accel-lab top", "textual")
        from accel_lab.top.terminal import Top

        with Looker(since_s) as looker:
            Top(looker).run()
        return
    with Looker(since_s) as looker:
        found = looker.settled()
    if stack:
        from accel_lab.top.stack import stack_of

        typer.echo(stack_of(found, stack))
        return
    if json:
        typer.echo(found.to_json())
    else:
        from rich.console import Console

        Console().print(found, crop=False)
    raise typer.Exit(found.status)


@app.command()
def report(
    recording: Annotated[
        Path, typer.Argument(help="What `views.record(lab, PATH)` has written.", show_default=False)
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path(
        "accel-lab-report.html"
    ),
) -> None:
    """Write one HTML file of a recorded session, to attach to a bug report.

    It has the timeline, kernels, faults and versions. What looks like a secret is left out, and so
    are the text of cells and what was printed; read it before you send it on.
    """
    from accel_lab import telemetry, views

    written = telemetry.report(views.Recording.open(recording), output)
    typer.echo(f"Written: {written}. Read it before you send it on.")


@app.command(name="gpu-test")
def gpu_test(
    *,
    backend: Annotated[
        str, typer.Option(help="cuda; or host, which tries the checks and no GPU.")
    ] = "cuda",
    devices: Annotated[
        int | None, typer.Option(min=1, help="How many devices; all when not given.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Test accel_lab on this machine's GPUs, against NumPy and SciPy, in a minute or two.

    A message of each library in every dtype that its table has, transfers, a kill, an illegal
    address, and a replay. The exit status is 0 only if all of it ran on that backend and was right.
    """
    from rich.console import Console

    from accel_lab.gpu_test import run

    with Console(stderr=True).status("opening the system") as status:
        report = run(backend, devices=devices, began=status.update)
    if json:
        typer.echo(report.to_json())
    else:
        Console().print(report, crop=False)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def bench(
    *,
    backend: Annotated[str, typer.Option(help="auto, cuda, wgpu or host.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run few rounds: rough figures in seconds.")
    ] = False,
    only: Annotated[str, typer.Option(help="Run only these benchmarks, separated by commas.")] = "",
) -> None:
    """Measure what messages, transfers, restarts and views cost, against CuPy or NumPy alone.

    The two sides run in alternating rounds, so on a busy machine trust the ratios, not the times.
    """
    from rich.console import Console

    from accel_lab.bench.suite import run

    names = [name.strip() for name in only.split(",") if name.strip()]
    with Console(stderr=True).status("opening the system") as status:
        report = run(backend, quick=quick, only=names, began=status.update)
    if json:
        typer.echo(report.to_json())
    else:
        Console().print(report, crop=False)


def _fail(text: str) -> NoReturn:
    typer.echo(f"accel-lab: {text}", err=True)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
