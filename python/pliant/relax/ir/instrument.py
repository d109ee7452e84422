"""Instruments of the graph level."""

from pliant.ir.instrument import WellFormedInstrument

__all__ = ["WellFormedInstrument"]
