"""``python -m xcfg.cli``: the same as the ``xcfg`` script."""

from xcfg.cli.entry import main

if __name__ == "__main__":
    main()
