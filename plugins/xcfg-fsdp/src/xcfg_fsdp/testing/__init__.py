"""What tests of the scorer ``fsdp`` share. Nothing imports it."""
