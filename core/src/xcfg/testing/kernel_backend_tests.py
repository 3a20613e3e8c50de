"""The conformance checks of a backend of ``selected_logprob``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import evolve

from xcfg.model.capability import Supported, Unsupported
from xcfg.model.kernel import KernelRequest, fitting_build
from xcfg.model.scorer import KernelBackendDescriptor
from xcfg.plugin.checkpoint import file_digest
from xcfg.plugin.protocols import KernelBackend

_ROWS = 7


class KernelBackendTests:
    """Subclass, set the attributes and methods, and pytest checks the backend.

    ``descriptor``: its descriptor. ``atol``: the absolute error against float64 (nats) the backend claims.
    ``to_engine`` and ``to_numpy`` convert between numpy and the arrays the backend works on.
    """

    descriptor: ClassVar[KernelBackendDescriptor]
    atol: ClassVar[float]
    vocab_size: ClassVar[int] = 33

    def make_backend(self) -> KernelBackend:
        """A new backend."""
        raise NotImplementedError

    def to_engine(self, values: np.ndarray) -> Any:
        """A float32 or int64 numpy array as the backend's own array."""
        return values

    def to_numpy(self, values: Any) -> np.ndarray:
        """The backend's array as numpy."""
        return np.asarray(values)

    def request(self) -> KernelRequest:
        """A request this machine can serve, for the build that is taken where nothing else is asked."""
        return KernelRequest(
            operator=self.descriptor.operator,
            device="cpu",
            dtype="float32",
            vocab_size=self.vocab_size,
            artifact=str(self.artifact() or ""),
        )

    def artifact(self) -> Path | None:
        """The file of the first build, found without importing its package; None for a backend without builds."""
        build = fitting_build(self.descriptor.builds, {})
        if build is None:
            return None
        package, _, inside = build.artifact.partition(":")
        spec = find_spec(package)
        places = () if spec is None else spec.submodule_search_locations or ()
        found = [path for place in places if (path := Path(place) / inside).is_file()]
        assert found, f"{build.artifact} is not installed"
        return found[0]

    def run(self, logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The bound operator's result (N,) float32."""
        with self.make_backend().bind(self.request()) as bound:
            return self.to_numpy(bound(self.to_engine(logits.copy()), self.to_engine(targets.copy())))

    def test_is_a_backend(self) -> None:
        """All three methods are there."""
        assert isinstance(self.make_backend(), KernelBackend)

    def test_probe(self) -> None:
        """The request is supported; an operator that does not exist is refused with a reason."""
        backend = self.make_backend()
        assert backend.probe(self.request()) == Supported()
        refused = backend.probe(evolve(self.request(), operator="no_such_operator"))
        assert isinstance(refused, Unsupported) and refused.reason.strip()

    def test_identifies_what_is_bound(self) -> None:
        """The id, a concrete implementation, no fallback; with builds, the digest of the file that is loaded."""
        backend = self.make_backend()
        with backend.bind(self.request()) as bound:
            found = backend.identify(bound)
        assert found.backend == self.descriptor.id
        assert found.concrete.strip() and found.build.strip()
        assert not found.fallback
        if (artifact := self.artifact()) is not None:
            digests = [build.fingerprint for build in self.descriptor.builds]
            assert file_digest(artifact) in digests, f"{artifact} is none of the builds of the descriptor"
            assert found.build == file_digest(artifact), "another file is loaded than the one that was asked for"

    def test_one_binding_serves_many_inputs(self) -> None:
        """Nothing of a call is left for the next one of the same shape."""
        cases = [self._case(scale) for scale in (1.0, 3.0)]
        with self.make_backend().bind(self.request()) as bound:
            for logits, targets in cases:
                found = self.to_numpy(bound(self.to_engine(logits.copy()), self.to_engine(targets.copy())))
                np.testing.assert_allclose(found, oracle(logits, targets), rtol=1e-6, atol=self.atol)

    def test_agrees_with_float64(self) -> None:
        """Within the claimed error, on ordinary, large and very unequal logits."""
        for scale in (1.0, 30.0, 1e4):
            logits, targets = self._case(scale)
            np.testing.assert_allclose(self.run(logits, targets), oracle(logits, targets), rtol=1e-6, atol=self.atol)

    def test_result_is_float32_of_one_value_a_row(self) -> None:
        """Also for no row at all."""
        logits, targets = self._case(1.0)
        assert self.run(logits, targets).dtype == np.float32
        assert self.run(logits, targets).shape == (_ROWS,)
        assert self.run(logits[:0], targets[:0]).shape == (0,)

    def test_excluded_columns_have_no_weight(self) -> None:
        """Minus infinity in other columns is probability 0 and no NaN."""
        logits, targets = self._case(1.0)
        columns = np.arange(self.vocab_size)
        logits[(columns[None, :] % 3 == 0) & (columns[None, :] != targets[:, None])] = -np.inf
        np.testing.assert_allclose(self.run(logits, targets), oracle(logits, targets), rtol=1e-6, atol=self.atol)

    def test_nan_stays_nan_in_its_row(self) -> None:
        """A NaN that becomes a number is a wrong number; the other rows do not change."""
        logits, targets = self._case(1.0)
        clean = self.run(logits, targets)
        logits[2, 5] = np.nan
        result = self.run(logits, targets)
        assert np.isnan(result[2])
        assert np.array_equal(np.delete(result, 2), np.delete(clean, 2))

    def test_same_input_gives_the_same_bits(self) -> None:
        """Run to run, in a new binding."""
        logits, targets = self._case(3.0)
        assert self.run(logits, targets).tobytes() == self.run(logits, targets).tobytes()

    def test_leaves_its_input_alone(self) -> None:
        """The engine still needs its logits."""
        logits, targets = self._case(3.0)
        given, wanted = self.to_engine(logits.copy()), self.to_engine(targets.copy())
        with self.make_backend().bind(self.request()) as bound:
            bound(given, wanted)
        assert np.array_equal(self.to_numpy(given), logits)
        assert np.array_equal(self.to_numpy(wanted), targets)

    def _case(self, scale: float) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(7)
        logits = (generator.standard_normal((_ROWS, self.vocab_size)) * scale).astype(np.float32)
        return logits, generator.integers(0, self.vocab_size, _ROWS)


def oracle(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """``log_softmax`` of the float32 logits in float64, at the targets: (N,)."""
    exact = logits.astype(np.float64)
    shifted = exact - exact.max(axis=1, keepdims=True)
    result: np.ndarray = shifted[np.arange(len(targets)), targets] - np.log(np.exp(shifted).sum(axis=1))
    return result
