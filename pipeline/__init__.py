"""What runs, in which order, and where: configuration, graph, runners, command line."""
