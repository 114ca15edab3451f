"""Under which names of the dashboard's server browsers may reach it."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec

import pytest

from accel_lab.views import Dashboard, dashboard
from tests.views.made_up import lab as made_up

if find_spec("prometheus_client") is None or find_spec("panel") is None:
    pytest.skip("panel and prometheus_client come with the lab extra", allow_module_level=True)

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
    "Sec-WebSocket-Protocol": "bokeh",
}


@pytest.fixture(scope="module")
def hub() -> Iterator[Dashboard]:
    lab = made_up(1)
    origins = ["Hub.example.org:443", "lab.example.org:8443", "plain.example.org"]
    with dashboard(lab, origins=origins) as page:
        yield page


def answers(served: Dashboard, host: str, origin: str) -> list[tuple[int, str]]:
    """Return what a browser is answered by the page, by the metrics and by the stream."""
    found = []
    for path, upgrade in (("/", {}), ("/metrics", {}), ("/ws", UPGRADE | {"Origin": origin})):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        with closing(connection):
            connection.request("GET", path, headers={"Host": host, **upgrade})
            answer = connection.getresponse()
            found.append((answer.status, answer.reason))
    return found


@pytest.mark.parametrize(
    "origin",
    [
        "https://hub.example.org",
        "https://hub.example.org:443",
        "https://lab.example.org:8443",
        "http://plain.example.org",
        "https://plain.example.org",
    ],
)
@pytest.mark.parametrize("proxy", ["keeps the name", "asks for its own"])
def test_a_proxy_under_a_name_that_was_told_is_answered(
    hub: Dashboard, origin: str, proxy: str
) -> None:
    host = f"localhost:{hub.port}" if proxy == "asks for its own" else origin.partition("//")[2]
    page, metrics, stream = answers(hub, host, origin)
    assert (page[0], metrics[0], stream[0]) == (200, 200, 101)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "lab.example.org"])
def test_a_name_that_leads_here_and_was_not_told_is_refused(hub: Dashboard, host: str) -> None:
    for status, reason in answers(hub, host, f"http://{host}"):
        assert status == 403
        assert "--allow-websocket-origin" in reason


def test_the_address_that_it_prints_needs_no_telling() -> None:
    with dashboard(made_up(1)) as page:
        for host in (f"127.0.0.1:{page.port}", f"localhost:{page.port}"):
            assert answers(page, host, f"http://{host}")[2][0] == 101


AUTOLOAD = "/autoload.js?bokeh-autoload-element=here"


def autoload(served: Dashboard, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    """Return what a page is answered that would embed this one."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    with closing(connection):
        connection.request(method, AUTOLOAD, headers={"Host": f"localhost:{served.port}", **named})
        answer = connection.getresponse()
        answer.read()
    return answer


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://hub.example.org:1"},
        {"Origin": "https://[evil"},
        {"Referer": "https://evil.example/page"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Cookie": "a=b"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_a_page_of_another_site_does_not_embed_it(
    hub: Dashboard, method: str, headers: dict[str, str]
) -> None:
    answer = autoload(hub, method, **({"Origin": "https://evil.example"} | headers))
    assert answer.status == 403
    assert answer.getheader("Access-Control-Allow-Origin") in (None, "*")
    if method == "GET":
        assert autoload(hub, method, **headers).status == 403


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "https://hub.example.org", "Cookie": "a=b"}, {"Sec_Fetch_Site": "same-origin"}],
)
def test_a_page_of_its_own_embeds_it(hub: Dashboard, headers: dict[str, str]) -> None:
    answer = autoload(hub, **headers)
    assert answer.status == 200
    assert answer.getheader("Access-Control-Allow-Origin") != "*"
