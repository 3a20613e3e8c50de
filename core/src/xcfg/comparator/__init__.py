"""Judges a rollout side against a training side on the same frozen tokens."""
