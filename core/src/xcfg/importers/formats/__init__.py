"""File formats of recorded logprobs, each one function ``read(path)`` that yields rows."""
