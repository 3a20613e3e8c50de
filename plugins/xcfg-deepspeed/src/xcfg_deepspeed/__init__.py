"""DeepSpeed score-only training engine. Importing this package imports no torch."""
