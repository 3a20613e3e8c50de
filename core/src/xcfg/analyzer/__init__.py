"""Evidence to findings: decision rules over a comparison and training curves, reading rules over an ablation."""
