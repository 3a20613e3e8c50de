"""What a backend may declare about its builds, and where a loaded function is."""

import ctypes

import pytest
from attrs import evolve

from xcfg.model.codec import structure, unstructure
from xcfg.model.kernel import KernelBuild, fitting_build
from xcfg.model.knob import Domain, Kind, Knob, Lifecycle, SourceClass, Target
from xcfg.model.scorer import KernelBackendDescriptor, Role
from xcfg.plugin.check_builds import build_faults
from xcfg.plugin.checkpoint import file_digest
from xcfg.plugin.loaded import loaded_digest, loaded_file

STRICT = KernelBuild(knobs={"kernel.fast_math": False}, artifact="pack:a.so", fingerprint="a" * 64)
FAST = KernelBuild(knobs={"kernel.fast_math": True}, artifact="pack:lib/b.so", fingerprint="b" * 64)
OWN = Knob(
    name="mine.tile",
    summary="a tile",
    source_class=SourceClass.ARITHMETIC,
    lifecycle=Lifecycle.BUILD,
    targets=Target.KERNEL,
    domain=Domain(kind=Kind.INT, optional=True),
)


def backend(*builds, lifecycle=Lifecycle.BUILD):
    return KernelBackendDescriptor(
        operator="selected_logprob", id="k", summary="", target="k:K", roles=(Role.TRAINING,), lifecycle=lifecycle,
        builds=builds,
    )  # fmt: skip


def test_sound_builds_have_no_fault_and_survive_json():
    made = backend(STRICT, FAST)
    assert list(build_faults(made, ())) == []
    assert list(build_faults(backend(lifecycle=Lifecycle.REQUEST), ())) == []
    assert structure(unstructure(made), KernelBackendDescriptor) == made


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (backend(STRICT, FAST, lifecycle=Lifecycle.REQUEST), "its lifecycle is 'build', not 'request'"),
        (backend(STRICT, evolve(FAST, fingerprint="a" * 64)), "they do not differ"),
        (backend(STRICT, evolve(STRICT, fingerprint="b" * 64)), "made with the same values"),
        (backend(STRICT, evolve(FAST, knobs={"kernel.sm90_path": True})), "a value for each knob"),
        (backend(evolve(STRICT, knobs={})), "a value for each knob"),
        (backend(evolve(STRICT, fingerprint="A" * 64)), "is not a SHA-256"),
        (backend(evolve(STRICT, artifact="/usr/lib/a.so")), "is not of the form"),
        (backend(evolve(STRICT, artifact="pack:/a.so")), "is not of the form"),
        (backend(evolve(STRICT, artifact="pack:../a.so")), "is not of the form"),
        (backend(evolve(STRICT, knobs={"rollout.dtype": "float32"})), "cannot differ in 'rollout.dtype'"),
        (backend(evolve(STRICT, knobs={"mine.tiles": 8})), "cannot differ in 'mine.tiles'"),
    ],
)
def test_builds_that_cannot_work_are_faults(made, words):
    [fault] = build_faults(made, [OWN])
    assert words in fault and "backend 'k' of 'selected_logprob'" in fault


def test_a_plugins_own_build_time_knob_may_tell_builds_apart():
    made = backend(evolve(STRICT, knobs={"mine.tile": 8}))
    assert list(build_faults(made, [OWN])) == []
    assert len(list(build_faults(made, [evolve(OWN, lifecycle=Lifecycle.ENGINE)]))) == 1


def test_a_faulty_build_makes_the_plugin_fail(install):
    from xcfg.plugin.registry import load_registry

    install(
        "xcfg-mine",
        """
        from xcfg.model.kernel import KernelBuild
        from xcfg.model.scorer import KernelBackendDescriptor, Role
        from xcfg.plugin import hookimpl


        @hookimpl
        def xcfg_kernel_backends():
            build = KernelBuild(knobs={"kernel.fast_math": True}, artifact="mine:a.so", fingerprint="f" * 64)
            return [KernelBackendDescriptor(operator="selected_logprob", id="k", summary="", target="k:K",
                                            roles=(Role.TRAINING,), builds=[build])]
        """,
    )
    assert "its lifecycle is 'build'" in load_registry().failures["xcfg-mine"]


def test_the_first_build_that_fits_is_taken():
    assert fitting_build([STRICT, FAST], {}) is STRICT
    assert fitting_build([STRICT, FAST], {"kernel.fast_math": None, "logp.backend": "k"}) is STRICT
    assert fitting_build([STRICT, FAST], {"kernel.fast_math": True}) is FAST
    assert fitting_build([STRICT], {"kernel.fast_math": True}) is None
    assert fitting_build([STRICT], {"kernel.fast_math": 0}) is None  # 0 is not false
    assert fitting_build([], {}) is None


def test_a_function_is_found_in_the_library_that_has_it():
    import _ctypes

    library = ctypes.CDLL(_ctypes.__file__)
    assert loaded_file(library.PyInit__ctypes).samefile(_ctypes.__file__)
    assert loaded_digest(library.PyInit__ctypes) == file_digest(loaded_file(library.PyInit__ctypes))


def test_a_function_of_no_library_has_no_file():
    callback = ctypes.CFUNCTYPE(None)(lambda: None)
    with pytest.raises(LookupError, match="no loaded library"):
        loaded_file(callback)


def test_the_name_that_was_asked_for_does_not_count(tmp_path):
    """A second path to a library that is loaded already gives the first one's functions."""
    import _ctypes

    other = tmp_path / "other.so"
    other.symlink_to(_ctypes.__file__)
    found = loaded_file(ctypes.CDLL(str(other)).PyInit__ctypes)
    assert found.name != "other.so"
