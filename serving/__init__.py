"""Everything that works on an exported SavedModel: checks, conversion, serving, the client."""
