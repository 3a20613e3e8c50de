"""The report of a run as one HTML file that opens without a network."""
