"""The commands of ``regard``, one module a group."""
