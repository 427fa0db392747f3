"""S²AC: energy-based maximum-entropy reinforcement learning with a policy whose density is known.

Names are imported when first used, so that `s2ac --help` does not wait for JAX.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Agent": "agent",
    "Box": "distributions",
    "Family": "inference",
    "Fit": "inference",
    "Gaussian": "distributions",
    "ParticleState": "samplers",
    "Sampler": "samplers",
    "SamplerInfo": "samplers",
    "StopTraining": "callbacks",
    "TracerState": "samplers",
    "TruncatedGaussian": "distributions",
    "check_finite": "samplers",
    "fit": "inference",
    "load": "agent",
    "make_box": "distributions",
    "make_dld": "samplers",
    "make_hmc": "samplers",
    "make_sgld": "samplers",
    "make_svgd": "samplers",
    "run": "samplers",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 's2ac' has no attribute {name!r}")
    return getattr(importlib.import_module(f"s2ac.{_HOME[name]}"), name)
