"""New distributions: a plugin, a kernel or an importer that installs, registers and passes the conformance kit."""
