"""The two answers beside the five source classes that a rule may give."""

from __future__ import annotations

UNRESOLVED = "unresolved"
"""Infrastructure, of one of the five source classes, but the evidence does not say which."""

NONE = "none"
"""None of the five source classes: the numbers of the two engines are not what went wrong."""

INFRASTRUCTURE = "infrastructure"
"""Subclass of ``UNRESOLVED``: anything between sampling and the training forward pass."""

PLUMBING = "logprob-plumbing"
"""Subclass of ``UNRESOLVED``: infrastructure, or the way logprobs reach the loss."""

DISTRIBUTED = "distributed"
"""Subclass of ``UNRESOLVED``: what differs between the ranks of one side."""

ALGORITHMIC = "algorithmic"
"""Subclass of ``NONE``: learning rate, clipping, reward, data or KL control."""
