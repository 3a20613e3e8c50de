"""What tests of torch scorers share: a tiny model and a player of the child's sequence. Nothing imports it."""
