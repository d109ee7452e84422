"""Helpers of ``tvm.contrib`` that do not depend on a library or device."""
