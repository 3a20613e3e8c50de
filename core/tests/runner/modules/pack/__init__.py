"""Builds of the kernels of ``odd_kernels``: files that hold a number."""
