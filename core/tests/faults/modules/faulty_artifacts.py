"""Scorers whose process writes something else than what was scored."""

import os
import pickle
import signal
from pathlib import Path

import numpy as np
from attrs import evolve
from safetensors.numpy import save

from xcfg.runner import reporter
from xcfg.testing.fakes import FakeScorer

PLAIN = reporter.replace


class Bomb:
    """Leaves a mark where it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path(os.environ["HOME"]) / "unpickled",))


class HalfTensor(FakeScorer):
    """Half of the tensor file reaches the disk."""

    def score(self, batch, request):
        reporter.replace = lambda path, data: PLAIN(
            path, data[: len(data) // 2] if path.suffix == ".safetensors" else data
        )
        return super().score(batch, request)


class KilledBetween(FakeScorer):
    """Killed when the tensors are written and their record is not."""

    def score(self, batch, request):
        def replace(path, data):
            if path.name.startswith("rank-") and path.suffix == ".json":
                os.kill(os.getpid(), signal.SIGKILL)
            PLAIN(path, data)

        reporter.replace = replace
        return super().score(batch, request)


class _Other(FakeScorer):
    def score(self, batch, request):
        reporter.save = lambda arrays: self.encode(arrays)
        return super().score(batch, request)


class OtherShape(_Other):
    def encode(self, arrays):
        return save({**arrays, "logprobs": arrays["logprobs"][:-1]})


class OtherDtype(_Other):
    def encode(self, arrays):
        return save({**arrays, "logprobs": arrays["logprobs"].astype(np.float64)})


class Pickled(_Other):
    def encode(self, arrays):
        return pickle.dumps(Bomb())


class WrongWeights(FakeScorer):
    """Loaded another file than it was told to."""

    def identity(self):
        return evolve(super().identity(), checkpoint_digest="0" * 64)
