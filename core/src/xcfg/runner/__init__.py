"""Execution: side runs in isolated processes, sealed on disk, each distinct engine constructed once."""
