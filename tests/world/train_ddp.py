"""Train on all ranks, as the scripts do that are begun with torchrun; it goes on where it stopped.

torchrun --nproc-per-node 2 train_ddp.py FOLDER [--epochs N] [--die-at EPOCH]
"""

import argparse
import json
import os
import signal
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--die-at", type=int, default=-1)
    args = parser.parse_args()
    dist.init_process_group(backend="gloo")
    rank = int(os.environ["RANK"])

    torch.manual_seed(0)
    x = torch.randn(256, 8)
    data = TensorDataset(x, x.square().sum(1, keepdim=True))
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    snapshot, curve, first = args.folder / "snapshot.pt", [], 0
    if snapshot.exists():
        saved = torch.load(snapshot)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first, curve = saved["epoch"] + 1, saved["curve"]
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for number, (batch, target) in enumerate(loader):
            if (epoch, rank, number) == (args.die_at, 1, 3) and first == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            loss = nn.functional.mse_loss(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        curve.append(total.item())
        if rank == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state | {"epoch": epoch, "curve": curve}, snapshot)
        dist.barrier()
    (args.folder / f"curve-{rank}.json").write_text(json.dumps(curve))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
