"""A pipeline in a notebook, where a loop runs already."""

from tests.cells import outputs_of

MAKE = """
from accel_lab import System
from accel_lab.pipeline import Source

lab = System("host", 1)
pipeline = Source(range(5)).stage(lambda device, n: device.run(pow, n, 2), devices=lab)
"""


def test_its_table_follows_the_run_and_both_ways_to_run_it_work() -> None:
    shown, left, blocked, awaited = outputs_of(
        MAKE + "pipeline.show()",
        "async for n in pipeline:\n    break\nn",
        "pipeline.result()",
        "await pipeline.run()",
    )
    (table,) = shown
    assert table["data"]["text/plain"].startswith("pipeline: done")
    assert '<th scope="row">stage 1</th>' in table["data"]["text/html"]
    assert left[-1]["data"]["text/plain"] == "0"
    assert awaited[-1]["data"]["text/plain"] == "[0, 1, 4, 9, 16]"
    assert blocked[-1]["data"]["text/plain"] == "[0, 1, 4, 9, 16]"
