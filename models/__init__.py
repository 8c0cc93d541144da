"""Everything that defines a model: attention, layers, encoders, decoders, search, tasks."""
