"""The conformance checks of a plugin module as the host sees it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import ClassVar

from xcfg.model.codec import dump_json, load_json, structure
from xcfg.plugin.checks import faults
from xcfg.plugin.contribution import Contribution
from xcfg.plugin.inventory import PluginInfo, PluginState, inventory
from xcfg.plugin.manager import check_hooks, load_plugins, new_manager

_IMPORTED = """
import sys
__import__(sys.argv[1])
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


class PluginTests:
    """Subclass, set the attributes, and pytest checks the plugin.

    ``name``: the entry point's name (the distribution's without ``xcfg-``). ``distribution``: the distribution's name.
    ``engines``: import names that importing the plugin must not import. The distribution has to be installed.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    engines: ClassVar[Sequence[str]] = ("torch", "numpy")

    def info(self) -> PluginInfo:
        """The plugin's entry in the inventory."""
        found = [item for item in inventory() if item.name == self.name and item.distribution == self.distribution]
        assert found, f"{self.distribution} declares no entry point {self.name!r} in the group xcfg"
        return found[0]

    def contribution(self) -> Contribution:
        """What the plugin registers."""
        (loaded,) = load_plugins([self.info()], new_manager())
        assert loaded.info.state is PluginState.LOADED, loaded.info.error
        return loaded.contribution

    def test_is_found_by_its_metadata(self) -> None:
        """Name, version range and target are right before anything is imported."""
        info = self.info()
        assert info.state is PluginState.AVAILABLE, info.error
        assert info.target.partition(":")[0], "the entry point names no module"

    def test_hooks_exist_and_take_the_right_arguments(self) -> None:
        """No function is called like a hook without being one."""
        check_hooks(import_module(self.info().target))

    def test_descriptors_are_sound(self) -> None:
        """Names, defaults and import strings."""
        assert list(faults(self.contribution())) == []

    def test_registers_something(self) -> None:
        """A plugin without descriptors may still observe; then override this."""
        assert list(self.contribution().items())

    def test_descriptors_round_trip_through_json(self) -> None:
        """Another interpreter may be asked for them."""
        contribution = self.contribution()
        assert structure(load_json(dump_json(contribution)), Contribution) == contribution

    def test_targets_name_modules_that_exist(self) -> None:
        """The modules are found; they are not imported, so the engine may be absent."""
        for key, descriptor in self.contribution().items():
            if target := getattr(descriptor, "target", ""):
                assert find_spec(target.partition(":")[0]) is not None, f"{key}: {target}"

    def test_import_is_light_and_silent(self) -> None:
        """Importing the plugin imports no engine and leaves standard output alone."""
        command = [sys.executable, "-c", _IMPORTED, self.info().target]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        found = set(self.engines) & set(done.stderr.split())
        assert not found, f"importing {self.info().target} imports {', '.join(sorted(found))}"
