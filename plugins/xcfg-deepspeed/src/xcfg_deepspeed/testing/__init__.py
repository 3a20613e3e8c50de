"""What tests of the scorer ``deepspeed`` share. Nothing imports it."""
