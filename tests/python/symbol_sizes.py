"""The sizes of symbols at which tests run programs."""

SIZES = (0, 1, 2, 3, 7, 8, 31, 64)
