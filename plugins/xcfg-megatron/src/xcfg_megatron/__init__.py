"""Megatron-Core score-only training engine. Importing this package imports no torch."""
