"""Teacher-forcing scorer for Hugging Face causal language models. Importing this package imports no torch."""
