"""Running what a gate file pins, and saying whether it still holds."""
