"""What checks of this plugin, and of other engines against it, are made with; nothing in a run imports it."""
