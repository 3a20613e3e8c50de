"""Kernels whose builds are files that say how much to add; see ``pack`` beside them."""

from contextlib import contextmanager
from pathlib import Path

from xcfg.model.kernel import BoundKernel
from xcfg.plugin.checkpoint import file_digest
from xcfg.testing.backends import ExactBackend
from xcfg.testing.language import selected_logprob


class Bound:
    def __init__(self, path):
        self.path = path
        self.offset = float(Path(path).read_text())

    def __call__(self, logits, targets):
        return (selected_logprob(logits, targets) + self.offset).astype("float32")


class Built(ExactBackend):
    """Loads what it is told to."""

    id = "built"

    @contextmanager
    def bind(self, request):
        yield Bound(request.artifact)

    def identify(self, bound):
        return BoundKernel(backend=self.id, concrete=Path(bound.path).name, build=file_digest(Path(bound.path)))


class Stuck(Built):
    """Loads the same build whatever it is told to."""

    id = "stuck"

    @contextmanager
    def bind(self, request):
        yield Bound(Path(request.artifact).with_name("half"))


class Foreign(Built):
    """Loads what is no build at all."""

    id = "foreign"

    @contextmanager
    def bind(self, request):
        yield Bound(Path(__file__).parent / "pack" / "foreign")
