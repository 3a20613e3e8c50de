"""Readers of recorded logprobs: file formats to rows, and the layouts of frameworks to records."""
