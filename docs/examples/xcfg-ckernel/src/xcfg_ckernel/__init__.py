"""A kernel of ``selected_logprob`` in C, built twice: with and without ``-ffast-math``."""
