"""Agreement of rollout and training logprobs, proven from the live engines."""
