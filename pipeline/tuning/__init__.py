"""``regard tune``: a search for better values of a configuration's keys."""
