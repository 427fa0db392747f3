"""The update that SAC, SAC-NF and S²AC share: its temperature."""

import numpy as np
import pytest

from s2ac.algorithms.sac import SacConfig, make_sac
from transitions import SPEC, after_updates, first_gradient, make_batch


@pytest.mark.parametrize("target", [None, 50.0])
def test_the_temperature_follows_the_entropy_alone(target):
    """It falls where the entropy is above its target, by default minus the action's dimension; nothing of the actor's loss is in it."""
    algorithm = make_sac(SPEC, SacConfig(hidden=(8,), alpha=0.2, learn_alpha=True, target_entropy=target))
    state, metrics = after_updates(algorithm, 1)
    excess = metrics["entropy"] - (-2 if target is None else target)
    np.testing.assert_allclose(first_gradient(state.alpha_memory), excess[0], rtol=1e-5)
    np.testing.assert_allclose(state.log_alpha - np.log(0.2), -3e-4 * np.sign(excess[0]), rtol=1e-2)


def test_relative_entropy_lowers_targets_by_alpha_log_volume():
    """Through the gradient of the critics' last bias, 2 mean(Q − y): y is γ (1 − terminated) α log(4 × 0.5) lower."""

    def slope(relative):
        algorithm = make_sac(SPEC, SacConfig(hidden=(8,), alpha=0.7, relative_entropy=relative))
        return first_gradient(after_updates(algorithm, 1)[0].critic_memory).rest[-1].bias

    going_on = np.mean(1 - np.asarray(make_batch().terminated))
    np.testing.assert_allclose(slope(True) - slope(False), 2 * 0.99 * going_on * 0.7 * np.log(2.0), rtol=1e-4)
