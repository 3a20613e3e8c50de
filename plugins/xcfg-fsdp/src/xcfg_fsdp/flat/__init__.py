"""FSDP1, which keeps the parameters of a layer in one flat tensor: the scorer ``fsdp1``."""
