"""FSDP2 and FSDP1 score-only training engines. Importing this package imports no torch."""
