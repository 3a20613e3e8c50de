"""``xcfg search`` and ``xcfg explain``: planner, runner, comparator and search meet here."""
