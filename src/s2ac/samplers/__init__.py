"""Samplers whose samples carry a log-density, under one protocol; see `protocol` for it and `svgd` for the mathematics."""

from s2ac.samplers.forms import FORMS
from s2ac.samplers.hmc import make_hmc
from s2ac.samplers.langevin import make_dld, make_sgld
from s2ac.samplers.protocol import ParticleState, Sampler, SamplerInfo, check_finite, run
from s2ac.samplers.svgd import TracerState, make_svgd

__all__ = [
    "FORMS",
    "ParticleState",
    "Sampler",
    "SamplerInfo",
    "TracerState",
    "check_finite",
    "make_dld",
    "make_hmc",
    "make_sgld",
    "make_svgd",
    "run",
]
