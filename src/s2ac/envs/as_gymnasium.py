"""An environment written in JAX as a Gymnasium one, to be filmed or used by other libraries."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from s2ac.envs.jax_env import JaxEnv


class AsGymnasium(gymnasium.Env):
    """Steps by the environment's own functions, compiled; its random numbers come from the seed of `reset`."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012  Gymnasium's own way

    def __init__(self, env: JaxEnv, render_mode: str | None = None) -> None:
        self.env, self.render_mode = env, render_mode
        low, high = (np.array(end, np.float32) for end in (env.spec.action_low, env.spec.action_high))
        self.action_space = spaces.Box(low, high, dtype=np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (env.spec.observation_size,), np.float32)
        self._reset, self._step = jax.jit(env.reset), jax.jit(env.step)
        self._state: Any = None

    def _key(self) -> Any:
        return jax.random.key(int(self.np_random.integers(2**31)))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self._state, observation = self._reset(self._key())
        return np.asarray(observation, np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step."""
        self._state, new = self._step(self._key(), self._state, np.asarray(action, np.float32))
        observation = np.asarray(new.observation, np.float32)
        return observation, float(new.reward), bool(new.terminated), bool(new.truncated), {}

    def render(self) -> Any:
        """The environment's own picture of its state."""
        return None if self.env.render is None else np.asarray(self.env.render(self._state))
