"""Tools on the graph level's IR."""
