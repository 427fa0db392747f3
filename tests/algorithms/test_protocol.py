"""What every algorithm does: actions in the box, parameters that learn, no random number twice."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from keys import recorded
from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.ddpg import DdpgConfig, make_ddpg
from s2ac.algorithms.ppo import PpoConfig, make_ppo
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac_nf import SacNfConfig, make_sac_nf
from s2ac.algorithms.sql import SqlConfig, make_sql
from s2ac.errors import InvalidArgument
from transitions import SPEC, make_batch


@pytest.mark.parametrize(("make", "share"), [(lambda spec: make_ddpg(spec, DdpgConfig(hidden=(4,))), 0.1),
                                             (lambda spec: make_ppo(spec, PpoConfig(hidden=(4,))), 1.0)])  # fmt: skip
def test_noise_is_in_the_units_of_the_box(make, share):
    algorithm = make(SPEC)
    state = jax.tree.map(jnp.zeros_like, algorithm.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), 2000)
    actions = jax.vmap(lambda k: algorithm.act(k, state, jnp.zeros(3), "sample"))(keys)
    np.testing.assert_allclose(actions.mean(axis=0), [1.0, 0.25], atol=0.15 * share)
    np.testing.assert_allclose(actions.std(axis=0), [2.0 * share, 0.25 * share], rtol=0.07)


@pytest.mark.parametrize("make", [
    lambda spec: make_sac_nf(spec, SacNfConfig(hidden=(4, 4), flow="coupling")),
    lambda spec: make_sql(spec, SqlConfig(hidden=(4, 4), num_particles=3, num_value_samples=2)),
    lambda spec: make_s2ac(spec, S2acConfig(hidden=(4, 4), frequency=1.0, num_particles=3, num_references=2, num_steps=2, weighted=True, start_alpha=1.0, explore_alpha=0.5)),
], ids=["sac-nf", "sql", "s2ac-weighted"])  # fmt: skip
def test_neither_the_first_parameters_nor_an_update_nor_an_action_draw_a_number_twice(make, used, monkeypatch):
    """A network's key, split for its layers, and `fold_in` of the same key are the same keys: two layers started as one."""
    algorithm, batch = make(SPEC), make_batch(8)

    @jax.jit
    def once(key):
        key_init, key_update, key_act = jax.random.split(key, 3)
        state, _ = algorithm.update(key_update, algorithm.init(key_init), batch)
        return algorithm.act(key_act, state, jnp.zeros(SPEC.observation_size), algorithm.explore)

    monkeypatch.setattr(jax.random, "split", recorded(used, "split", jax.random.split))  # nor is a key split twice
    once(jax.random.key(7)).block_until_ready()
    jax.effects_barrier()
    keys = [tuple(data) for _, *data in used]
    assert len(keys) >= 12
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("s2ac-amortized", "s2ac-phi") else n for n in ALGORITHMS]
)
def test_protocol(name):
    """Actions stay in the box (PPO's are clipped by the loop), rules differ as they should, every parameter learns."""
    entry = ALGORITHMS[name]
    changes = {"hidden": (16,)} | (
        {"num_particles": 3, "num_references": 2, "num_steps": 2} if name.startswith("s2ac") else {}
    )
    algorithm = entry.make(SPEC, replace(entry.config, **changes))
    before = jax.jit(algorithm.init)(jax.random.key(0))
    batch = make_batch()
    if algorithm.experience == "rollout":
        batch = jax.tree.map(lambda field: field.reshape((8, 4, *field.shape[1:])), batch)
    update = jax.jit(algorithm.update)
    after, metrics = update(jax.random.key(1), before, batch)
    for step in range(2, 6):
        after, metrics = update(jax.random.key(step), after, batch)
    assert all(jnp.shape(value) == () and np.isfinite(value) for value in metrics.values())
    idle = {"actor_memory"} if name == "s2ac-phi" else set()  # no actor
    idle |= {"auxiliary_memory"} if name != "s2ac-amortized" else set()
    for field, old, new in zip(before._fields, before, after, strict=True):
        for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
            assert np.array_equal(one, other) == (field in idle), field

    keys = jax.random.split(jax.random.key(9), 64)
    for rule in algorithm.rules:
        act = jax.jit(lambda k, o, r=rule: algorithm.act(k, after, o, r))
        actions = jax.vmap(act, (0, None))(keys, batch.observation.reshape(-1, 3)[0])
        assert actions.shape == (64, 2)
        if name != "ppo":
            assert (actions >= jnp.array(SPEC.action_low)[None]).all()
            assert (actions <= jnp.array(SPEC.action_high)[None]).all()
        assert (jnp.ptp(actions, axis=0) == 0).all() == (rule == "mean")


def test_unknown_names_are_refused():
    with pytest.raises(InvalidArgument, match=r"flow = 'radail'.*did you mean 'radial'"):
        make_sac_nf(SPEC, SacNfConfig(flow="radail"))
    with pytest.raises(InvalidArgument, match=r"form = 'tracr'.*did you mean 'tracer'"):
        make_s2ac(SPEC, S2acConfig(form="tracr"))
