"""Adaptive search for the smallest set of knobs to align, over outcomes of cases; it knows no runner."""
