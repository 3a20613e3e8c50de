"""Reports for people, made from the documents that ``--json`` prints."""
