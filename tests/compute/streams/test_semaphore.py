"""A semaphore that code without Python posts: here the C library, called from a thread."""

import ctypes
import threading
import time

from accel_lab.compute.streams.semaphore import Semaphore, post_address

POST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def post(semaphore: Semaphore) -> None:
    assert POST(post_address())(semaphore.address) == 0


def test_a_post_ends_a_wait_and_counts() -> None:
    semaphore = Semaphore()
    threading.Timer(0.05, post, [semaphore]).start()
    assert semaphore.wait(30.0)
    post(semaphore)
    post(semaphore)
    assert semaphore.wait(30.0)
    assert semaphore.wait(30.0)
    assert not semaphore.wait(0.01)


def test_a_wait_ends_in_time_and_other_threads_go_on() -> None:
    semaphore, turns = Semaphore(), 0
    ended = threading.Event()

    def wait() -> None:
        assert not semaphore.wait(0.3)
        ended.set()

    begin = time.monotonic()
    threading.Thread(target=wait).start()
    while not ended.is_set():
        turns += 1
        time.sleep(0.001)
    assert time.monotonic() - begin >= 0.3
    assert turns > 1, "the wait keeps the interpreter's lock"
