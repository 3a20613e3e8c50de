"""From an experiment file to a plan: reading, checking, expanding, isolating. Imports no engine."""
