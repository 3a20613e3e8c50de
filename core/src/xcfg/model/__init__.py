"""Frozen values passed between the stages; no behaviour beyond validation."""
