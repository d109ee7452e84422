"""The field's module of operators that broadcast: the names of :mod:`pliant.topi`."""

from pliant.topi._operator import names_of_topi

__getattr__ = names_of_topi
