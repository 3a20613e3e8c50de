"""Kernel backends for xcfg. Importing this package imports no torch."""
