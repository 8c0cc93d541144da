"""The Trainer: length buckets, a token budget per batch, resume, early stopping and export."""

# The name of the component in events.
NODE = "Trainer"
