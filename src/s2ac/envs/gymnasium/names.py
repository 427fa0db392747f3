"""The environments of this package in Gymnasium: importing this module registers them, and imports none of them."""

import gymnasium

MULTIGOAL = "s2ac.envs.multigoal.gymnasium:MultigoalEnv"
POINTMAZE = "s2ac.envs.pointmaze.gymnasium:PointMazeEnv"

gymnasium.register("s2ac/Multigoal-v0", MULTIGOAL)
gymnasium.register("s2ac/MultigoalFar-v0", MULTIGOAL, kwargs={"goal_reward": 300.0})
for maze in ("simple", "medium", "hard"):
    gymnasium.register(f"s2ac/PointMaze-{maze}-v0", POINTMAZE, kwargs={"maze": maze})
