"""The record of a device: what is sent while it is drained comes in its order."""

import msgspec

from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.markers import Content
from accel_lab.compute.lineage.recorder import Kept, Recorder
from accel_lab.compute.message.builtin import Put
from accel_lab.compute.wire.codec import encode_entry


def test_bytes_are_told_of_after_the_message_that_took_them() -> None:
    recorder = Recorder("cpu0", Contents(), lambda: None)
    drained: list[list[bytes]] = []
    recorder.followers.append(drained.append)
    sent = iter(range(2, 100))

    def upload(seq: int) -> None:
        def send_another() -> None:
            if (after := next(sent)) <= 4:
                upload(after)

        recorder.append(encode_entry(seq, seq, None, Put((1,), "uint8", b"\x01")))
        recorder.keep(seq, Kept(bytes([seq]), done=send_another))

    upload(1)
    while recorder.drain():
        pass
    marker = Content.__struct_config__.tag
    told = [msgspec.msgpack.decode(part)[:2] for parts in drained for part in parts]
    assert told == [one for seq in range(1, 5) for one in ([seq, seq], [marker, seq])]
