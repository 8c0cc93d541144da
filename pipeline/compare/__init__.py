"""Several configurations on the same data: one after the other, one table, two pictures."""
