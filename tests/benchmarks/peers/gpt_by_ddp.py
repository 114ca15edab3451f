"""A GPT in PyTorch's DistributedDataParallel, for torchrun: the seconds of its steps.

torchrun --nproc-per-node 4 -m tests.benchmarks.peers.gpt_by_ddp '[65, 512, 1024, 16, 8]' 16 3 20

That is the shape of the model, the rows of each rank, and the steps before the clock and by it.
"""

import json
import os
import sys
import time
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from accel_lab.blueprints import train
from tests.benchmarks.torch_gpt import torch_logits


class Model(torch.nn.Module):  # type: ignore[misc]
    """The model, whose parameters have no point in their names."""

    def __init__(self, model: train.GPT) -> None:
        super().__init__()
        self.model = model
        self.names = list(model.parameters())
        for name, x in model.parameters().items():
            self.register_parameter(name.replace(".", "_"), torch.nn.Parameter(torch.tensor(x)))

    def forward(self, tokens: Any, following: Any) -> Any:
        """Return the loss."""
        p = {name: getattr(self, name.replace(".", "_")) for name in self.names}
        logits = torch_logits(torch, self.model, p, tokens)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def main() -> None:
    """Train, and write the seconds of a step."""
    shape, rows, warm, steps = (json.loads(one) for one in sys.argv[1:])
    on_cards = torch.cuda.is_available()
    distributed.init_process_group("nccl" if on_cards else "gloo")
    rank = int(os.environ["LOCAL_RANK"])
    where = torch.device("cuda", rank) if on_cards else torch.device("cpu")
    model = train.GPT(*shape)
    ours = Model(model).to(where)
    wrapped = DistributedDataParallel(ours, device_ids=[rank] if on_cards else None)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-4)
    text = train.Text(train.sonnets(), length=model.length, size=rows, seed=rank)

    def step(at: int) -> float:
        tokens, following = (torch.tensor(one).to(where) for one in text(at))
        optimizer.zero_grad()
        loss = wrapped(tokens, following)
        loss.backward()
        optimizer.step()
        told: float = loss.item()  # as a trainer of ours has all losses
        return told

    for at in range(warm):
        step(at)
    begin = time.perf_counter()
    losses = [step(at) for at in range(warm, warm + steps)]
    spent = time.perf_counter() - begin
    if not rank:
        sys.stdout.write(json.dumps({"seconds": spent / steps, "loss": losses[-1]}) + "\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
