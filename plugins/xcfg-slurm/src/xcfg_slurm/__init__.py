"""Executor on Slurm. Importing this package imports no submitit."""
