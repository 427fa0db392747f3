"""An environment that another process can make without importing JAX."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Counter(gymnasium.Env):
    """Observes its number and the time; its episodes have as many steps as its number says."""

    observation_space = spaces.Box(0, 99, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, number):
        self.number = number

    def observe(self):
        return np.array([self.number, self.time], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        return self.observe(), 1.0, False, self.time >= self.number, {}
