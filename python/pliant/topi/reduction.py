"""The names of :mod:`pliant.topi`, for code that imports reductions from this module as in TVM."""

from pliant.topi._operator_wrapper import names_of_topi

__getattr__ = names_of_topi
