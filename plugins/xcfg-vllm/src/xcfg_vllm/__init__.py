"""xcfg plugin for vLLM: importing this package imports no engine."""
