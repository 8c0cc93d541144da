"""What TFX's Trainer runs: length buckets, a token budget, resume, early stop, export."""
