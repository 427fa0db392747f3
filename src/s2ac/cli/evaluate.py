"""The command `evaluate`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro


@dataclass(frozen=True)
class Evaluate:
    """Play episodes with a trained run and print their mean return ± standard deviation."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name, such as multigoal/s2ac."""

    episodes: int = 20
    """Episodes per seed."""

    select: str = "sample"
    """Selection rules, separated by commas."""

    picture: str | None = None
    """Draw the trajectories into this PNG (multigoal and PointMaze in JAX)."""

    def __call__(self) -> None:
        """A line per seed and rule, with what the environment has to say of it."""
        from s2ac.envs.registry import ENVIRONMENTS
        from s2ac.errors import S2acError, check_count, check_name
        from s2ac.runs.places import find_agent
        from s2ac.runs.policy import load_policy
        from s2ac.training.evaluate import make_player

        check_count("episodes", self.episodes, 1)
        policy = load_policy(find_agent(self.run))
        rules = tuple(self.select.split(","))
        for rule in rules:
            check_name("select", rule, policy.algorithm.rules)
        entry = ENVIRONMENTS.get(policy.env_name)
        if self.picture and not (entry and entry.draw):
            drawn = ", ".join(name for name, one in ENVIRONMENTS.items() if one.draw)
            raise S2acError(f"--picture draws {drawn} only, not {policy.env_name}")
        for complaint in policy.complaints:
            print(f"note: {complaint}")
        player = make_player(policy.env_name, None, policy.algorithm, policy.spec, policy.config)
        played = player.play(policy.states, rules, self.episodes)
        player.close()
        for rule, result in played.items():
            for index, (seed, total) in enumerate(zip(policy.config.seed_range, result.total, strict=True)):
                said = (
                    f", {entry.describe(np.asarray(result.observation)[index, :, -1])}"
                    if entry and entry.describe
                    else ""
                )
                print(
                    f"{rule}, seed {seed}: return {total.mean():.2f} ± {total.std():.2f} over {len(total)} episodes{said}"
                )
        if self.picture and entry and entry.draw:
            entry.draw(
                np.asarray(played[rules[0]].observation), f"{policy.about['algo']}, {rules[0]}", Path(self.picture)
            )
            print(f"picture: {self.picture}")
