"""A put that its context begins with before it has the message."""

from tests.compute.own_cuda.conftest import Reading


def test_a_put_ends_with_its_copy_though_the_answer_is_late(reading: Reading) -> None:
    """The context copies once, before it gets the message, and says so in shared memory."""
    reading(
        """
from accel_lab.errors import DependencyFailed, QueueFull
late, gate = FOLDER / "late", FOLDER / "gate"

def refused(*_, **options):
    assert options["announced"]
    raise QueueFull("full")

transfers.soon_s = lambda nbytes: 3.0  # a slow machine copies late
with System("reading", devices=1) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x = fresh(3)
    gpu.put(x)

    def put(late_s):  # whoever finds another thread reading waits for the answer
        late.touch()
        answer = threading.Timer(late_s, late.unlink)
        answer.start()
        return gpu.put(x), answer

    early = 0
    for turn in range(1, 20):
        x.array[:] = turn
        ref, answer = put(0.2)
        early += not ref.done
        x.array[:] = -1
        answer.join()
        assert (ref.get(timeout_s=60) == turn).all()
    assert early > 5, early
    gate.touch()  # what is given up here
    try:
        gpu.put(x, timeout_s=0.05)
    except TimeoutError:
        pass
    else:
        raise AssertionError
    gate.unlink()
    for turn in range(40, 50):  # is no sign of what comes after
        x.array[:] = turn
        ref = gpu.put(x)
        x.array[:] = -1
        assert (ref.get(timeout_s=60) == turn).all()
    ref, answer = put(5)
    while ref.done:
        ref, answer = put(5)
    gpu.replace()
    answer.cancel()
    late.unlink(missing_ok=True)
    try:
        ref.result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextReplaced", error
    else:
        raise AssertionError
    x.array[:] = 50
    assert (gpu.put(x).get(timeout_s=60) == 50).all()
    del ref
    gpu.ping().result(60)
    assert len(gpu.resident) == 0

    def begun():  # in the context
        from accel_lab.compute.execution.buffer_table import BufferTable
        return [len(one.begun) for one in gc.get_objects() if type(one) is BufferTable]

    requests = gpu._requests
    requests.outbox.send = refused  # after it was announced
    try:
        gpu.put(x)
    except QueueFull:
        del requests.outbox.send
    gpu.ping().result(60)  # what is free goes behind it
    assert gpu.run(begun).result(60) == [0]

    def lost_meanwhile(message):
        del requests.unrecorded.announce
        announced = requests.unrecorded.announce(message)
        time.sleep(0.05)  # it is copied, and said to be
        gpu.replace()
        gpu.ping().result(60)
        gate.touch()
        threading.Timer(0.3, gate.unlink).start()
        return announced

    for turn in range(60, 64):
        x.array[:] = turn
        gpu.put(x)
        requests.unrecorded.announce = lost_meanwhile
        ref = gpu.put(x)
        x.array[:] = -1
        try:
            assert (ref.get(timeout_s=60) == turn).all()
        except DependencyFailed as error:  # and never computes with what came later
            assert type(error.__cause__).__name__ == "StaleRef", error
    x.array[:] = 50
    assert (gpu.put(x).get(timeout_s=60) == 50).all()
assert not freed_while_open, freed_while_open
"""
    )


def test_one_that_is_watched_is_copied_between_its_marks(reading: Reading) -> None:
    """So the context does not begin with it; who looks at the timeline sees how long it took."""
    reading(
        """
with System("reading", devices=1) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x = fresh(3)
    gpu.put(x)

    sampler = lab._supervisors[0].sampler

    def note():  # in the context: what is begun when it copies
        from accel_lab.compute.execution import tracer
        from accel_lab.compute.actors.transfer import UploadActor
        tracer.WATCHED_S = 60.0
        copy, UploadActor.begun = UploadActor._copy, []
        def noted(self, m, array):
            UploadActor.begun.append([*self.context.table.begun.values()])
            copy(self, m, array)
        UploadActor._copy = noted

    def noted():
        from accel_lab.compute.actors.transfer import UploadActor
        return UploadActor.begun

    gpu.run(note).result(60)
    for watched in (False, True):
        if watched:
            sampler.closely = 1
            seen = sampler.look(memory=False, work=True)  # by another channel
            soon(lambda: seen or sampler.look(memory=False, work=False))  # it is answered
        x.array[:] = watched
        ref = gpu.put(x)
        x.array[:] = -1
        assert (ref.get(timeout_s=60) == watched).all()
    found = gpu.run(noted).result(60)
    assert found == [[None], []], found  # by its announcement, and by its message
assert not freed_while_open, freed_while_open
"""
    )
