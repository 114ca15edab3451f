"""The metrics, as Prometheus reads them, and the server that has them."""

import contextlib
import ctypes
import gc
import getpass
import http.client
import os
import re
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from accel_lab.actor.events import EventStream
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import HealthSampled, Reading, WorkTraced
from accel_lab.display.install import pip_install
from accel_lab.errors import DashboardUnavailable, InvalidArgument
from accel_lab.views import Dashboard, dashboard
from accel_lab.views.dashboard.peer_credentials import Visitors, owner_of
from accel_lab.views.dashboard.watched import Onlooker
from tests.held import NOTHING, held
from tests.views.feed.processes import eventually
from tests.views.made_up import GIB
from tests.views.made_up import lab as made_up

if find_spec("prometheus_client") is None or find_spec("panel") is None:
    pytest.skip("panel and prometheus_client come with the lab extra", allow_module_level=True)

from prometheus_client.parser import text_string_to_metric_families

from accel_lab.views.dashboard.metrics import exposition

Samples = dict[tuple[str, str], float]


def read(text: bytes) -> Samples:
    """Read an exposition with the official parser: values by name and device."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            if sample.labels.get(family.name) in {None, "open"}:
                key = sample.name, sample.labels.get("device", sample.labels["system"])
                assert key not in found, "a series is told once"
                found[key] = sample.value
    return found


def test_each_device_has_its_figures() -> None:
    lab = made_up(2)
    onlooker = Onlooker(lab, "lab")
    lab.restart(1)
    vars(lab.devices[1]).update(in_flight=7, mailbox=3, state="circuit open")
    lab.events.publish(ContextLost(device="gpu1", generation=1, cause="SIGKILL", in_flight=0))
    lab.seen.append(WorkTraced(device="gpu1", generation=2, done=(), running=(), dropped=5))
    with onlooker.lock:
        onlooker.look()
    told = read(exposition([onlooker]))
    assert told["accel_lab_up", "lab"] == 1
    assert {name: value for (name, device), value in told.items() if device == "gpu1"} == {
        "accel_lab_generation": 2,
        "accel_lab_restarts_total": 1,
        "accel_lab_context_losses_total": 1,
        "accel_lab_in_flight": 7,
        "accel_lab_mailbox": 3,
        "accel_lab_memory_used_bytes": int((1.2 + 15.9) * GIB),
        "accel_lab_memory_total_bytes": 139 * GIB,
        "accel_lab_untraced_total": 5,
        "accel_lab_circuit": 1,
    }
    assert told["accel_lab_circuit", "gpu0"] == 0
    assert told["accel_lab_feed_samples_lost_total", "lab"] == 0
    assert told["accel_lab_silence_seconds", "lab"] == 0


def test_readings_of_cards_are_metrics_in_base_units() -> None:
    lab = made_up(1)
    onlooker = Onlooker(lab, "lab")
    readings = (
        Reading("power", 312.5, "W", 700.0),
        Reading("SM clock", 1980, "MHz"),
        Reading("utilisation", 43, "%", 100),
        Reading("ECC corrected", None, why="not supported"),
    )
    with onlooker.lock:
        onlooker.look().add(HealthSampled(source="gpu0", model="H100", readings=readings))
    told = read(exposition([onlooker]))
    assert {name: value for (name, _), value in told.items() if "_card_" in name} == {
        "accel_lab_card_power_watts": 312.5,
        "accel_lab_card_sm_clock_hertz": 1.98e9,
        "accel_lab_card_utilisation_ratio": 0.43,
    }


def test_a_counter_goes_on_when_the_scene_has_forgotten() -> None:
    lab = made_up(1)
    lab.events = EventStream(capacity=5000)
    onlooker = Onlooker(lab, "lab")
    for _ in range(3):
        for _ in range(700):
            lab.events.publish(ContextLost(device="gpu0", generation=1, cause="", in_flight=0))
        with onlooker.lock:
            onlooker.look()
    assert read(exposition([onlooker]))["accel_lab_context_losses_total", "gpu0"] == 2100


def test_a_system_that_ended_is_down_and_has_no_devices() -> None:
    lab = made_up(1)
    onlooker = Onlooker(lab, "lab")
    lab.closed = True
    with onlooker.lock:
        onlooker.look()
    assert read(exposition([onlooker])) == {("accel_lab_up", "lab"): 0}


def test_names_with_quotes_and_names_that_are_taken_make_series_of_their_own() -> None:
    labs = made_up(0), made_up(0), made_up(0)
    name = 'a "b"\\\n'
    onlookers = [Onlooker(lab, name) for lab in labs]
    labs[0].closed = True
    with onlookers[0].lock:
        onlookers[0].look()
    told = read(exposition(onlookers))
    assert {key: value for key, value in told.items() if key[0] == "accel_lab_up"} == {
        ("accel_lab_up", name): 1,
        ("accel_lab_up", f"{name} (2)"): 1,
    }


# The server, in a kernel.


def fetch(url: str, **headers: str) -> Any:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server
    return urllib.request.urlopen(request, timeout=20)  # noqa: S310


@pytest.fixture
def served() -> Iterator[Dashboard]:
    lab = made_up(1)
    with dashboard(lab) as page:
        yield page


def test_the_page_and_its_metrics_are_served_on_loopback(served: Dashboard) -> None:
    assert served.url == f"http://127.0.0.1:{served.port}/"
    assert served.url in served._repr_html_()
    page = fetch(served.url).read().decode()
    for attribute in ('src="', 'href="'):
        for part in page.split(attribute)[1:]:
            address = part.partition('"')[0]
            assert not address.startswith(("/", "http")), "a proxy gives the page another root"
    answer = fetch(f"{served.url}metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert read(answer.read())["accel_lab_up", "lab"] == 1


def test_another_site_gets_neither_metrics_nor_the_stream(served: Dashboard) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        fetch(f"{served.url}metrics", Host="evil.example")
    assert status(served, "http://evil.example") == 403
    assert status(served, f"http://127.0.0.1:{served.port + 1}") == 403
    assert status(served, f"http://localhost:{served.port}") != 403


def status(served: Dashboard, origin: str) -> int:
    """Return the answer to a page of this origin that asks for the stream."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    upgrade = {
        "Origin": origin,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
        "Sec-WebSocket-Protocol": "bokeh",
    }
    connection.request("GET", "/ws", headers=upgrade)
    with contextlib.closing(connection):
        return connection.getresponse().status


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Have this thread open files and sockets as user 65534, as only root can."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    libc = ctypes.CDLL(None)
    libc.setfsuid(65534)
    try:
        yield
    finally:
        libc.setfsuid(0)


def test_another_user_of_the_machine_sees_nothing(served: Dashboard) -> None:
    with another_user():
        for page in ("", "metrics"):
            with pytest.raises(urllib.error.HTTPError, match=f"403.*for {getpass.getuser()}"):
                fetch(f"{served.url}{page}")
        assert status(served, f"http://127.0.0.1:{served.port}") == 403
    assert fetch(served.url).status == 200


def test_another_user_looks_where_the_user_says_so() -> None:
    with dashboard(made_up(1), users=["65534"]) as page, another_user():
        assert fetch(page.url).status == 200
        assert fetch(f"{page.url}metrics").status == 200
        assert status(page, f"http://127.0.0.1:{page.port}") != 403


def test_a_user_who_is_not_there_is_named() -> None:
    with pytest.raises(InvalidArgument, match="'nobody-of-this-name'"):
        dashboard(made_up(1), users=["nobody-of-this-name"])


@pytest.mark.parametrize(
    ("family", "host", "reached"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_the_kernel_tells_whose_a_connection_is(
    family: socket.AddressFamily, host: str, reached: str
) -> None:
    listens = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=listens)
    except OSError as error:
        pytest.skip(f"no such network here: {error}")
    with listener, socket.socket(family) as client:
        client.connect((reached, listener.getsockname()[1]))
        ours, theirs = listener.accept()
        with ours:
            assert owner_of(theirs[:2], ours.getsockname()[:2]) == os.geteuid()
            assert Visitors().may_look(ours)
        nobody = (theirs[0], 1)  # where no connection is
        assert owner_of(nobody, listener.getsockname()[:2]) is None


def test_a_closed_dashboard_leaves_no_thread_and_no_socket() -> None:
    with dashboard(made_up(1)) as page:  # what stays after the first stays once a process
        fetch(page.url).read()
    gc.collect()
    before = held()
    with dashboard(made_up(1)) as page:
        fetch(page.url).read()
    page.close()
    gc.collect()
    eventually(lambda: before.more() == NOTHING)
    with pytest.raises(urllib.error.URLError):
        fetch(page.url)


def test_a_port_that_is_taken_is_named_and_how_to_have_another(served: Dashboard) -> None:
    told = f"127.0.0.1:{served.port}: .* in use: port 0 is any that is free"
    with pytest.raises(DashboardUnavailable, match=told):
        dashboard(made_up(1), port=served.port)


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_port_that_cannot_be_is_refused(port: int) -> None:
    with pytest.raises(InvalidArgument, match=f"0 to 65535, not {port}"):
        dashboard(made_up(1), port=port)


def test_without_panel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Dashboard.__module__], "find_spec", lambda _: None)
    with pytest.raises(DashboardUnavailable, match=re.escape(pip_install("lab"))):
        dashboard(made_up(1))
