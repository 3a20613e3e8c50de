"""What kind of fault the numbers of two sides look like, from the numbers alone."""
