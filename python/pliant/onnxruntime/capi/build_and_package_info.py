"""``onnxruntime.capi.build_and_package_info``: the name and version of the package."""

from __future__ import annotations

from pliant.onnxruntime._version import API_VERSION

package_name = "onnxruntime"
__version__ = API_VERSION
