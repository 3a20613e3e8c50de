"""Keeping and sharing results: verify, merge, compact, export and upload of output folders and their cubes."""
