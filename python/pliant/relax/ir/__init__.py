"""Tools for the IR of the graph level."""
