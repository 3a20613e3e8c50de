"""Executor on a Ray cluster. Importing this package imports no ray."""
