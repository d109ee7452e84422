"""The field's module of functions that make tensors: the names of :mod:`pliant.topi`."""

from pliant.topi._operator import names_of_topi

__getattr__ = names_of_topi
