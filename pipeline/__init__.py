"""What runs, in which order, and where. The Python API is imported from ``regard``."""
