"""Core's own plugin: the semantic knobs shared by every engine and the WS1 tolerance contract."""
