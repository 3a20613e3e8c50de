"""What tests of the scorer share. Nothing imports it."""
