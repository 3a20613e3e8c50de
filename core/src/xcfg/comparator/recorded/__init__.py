"""Recorded logprobs of two sides, joined by sequence id on disk and compared in bounded memory."""
