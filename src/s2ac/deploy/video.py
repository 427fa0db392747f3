"""A trained agent at play, as a video file. Multigoal renders everywhere; MuJoCo where there is OpenGL."""

import os
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from s2ac.agent import Agent, load
from s2ac.envs.gymnasium.adapter import CUSTOM
from s2ac.errors import InvalidArgument, S2acError, check_count, check_name

ENDINGS = (".mp4", ".gif")
GYMNASIUM_NAMES = {"multigoal": "s2ac/Multigoal-v0", "multigoal-far": "s2ac/MultigoalFar-v0"}
HOLD = 5  # frames that an episode's last picture stays


class Video(NamedTuple):
    """What was written."""

    file: Path
    frames: int
    returns: list[float]


def play(
    agent: Agent,
    file: str | Path,
    episodes: int = 3,
    select: str = "sample",
    *,
    seed_index: int = 0,
    env: gymnasium.Env | None = None,
) -> Video:
    """Play episodes and write their pictures to an .mp4 or .gif.

    `env`, with render_mode rgb_array, is needed only if the agent's environment was not given by name.
    """
    path = Path(file)
    check_count("episodes", episodes, 1)
    check_name("select", select, agent.algorithm.rules)
    if path.suffix not in ENDINGS:
        raise InvalidArgument(f"video = {str(path)!r}: must end in {' or '.join(ENDINGS)}")
    if path.suffix == ".mp4":
        _imageio()  # say what is missing before the play, not after it
    env = env or rendered(agent.env_name)
    frames: list[np.ndarray] = []
    returns = []
    try:
        for episode in range(episodes):
            observation, _ = env.reset(seed=episode)
            frames.append(_picture(env, agent.env_name))
            total, ended = 0.0, False
            while not ended:
                flat = observation if isinstance(observation, dict) else np.asarray(observation)
                action = agent.predict(flat, select, seed_index=seed_index)
                observation, reward, terminated, truncated, _ = env.step(action.astype(env.action_space.dtype))
                total, ended = total + float(reward), terminated or truncated
                frames.append(_picture(env, agent.env_name))
            frames += [frames[-1]] * HOLD
            returns.append(total)
    finally:
        env.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, frames, int(env.metadata.get("render_fps", 30)))
    return Video(path, len(frames), returns)


def rendered(name: str) -> gymnasium.Env:
    """The environment, ready to give pictures; one line if it cannot here."""
    if name.startswith(CUSTOM):
        raise InvalidArgument(
            f"env = {name!r} is an environment of your own: s2ac.deploy.video.play(agent, file, env=...)"
        )
    if name in GYMNASIUM_NAMES or name.startswith("s2ac/"):
        import s2ac.envs.gymnasium.names  # noqa: F401  registers it
    elif sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo's own default wants a display
    try:
        return gymnasium.make(GYMNASIUM_NAMES.get(name, name), render_mode="rgb_array")
    except Exception as error:
        raise _cannot(name, error) from error


def _picture(env: gymnasium.Env, name: str) -> np.ndarray:
    try:
        picture: Any = env.render()
    except Exception as error:  # OpenGL libraries raise all sorts
        raise _cannot(name, error) from error
    if not isinstance(picture, np.ndarray):
        raise S2acError(f"{name} gave no picture: it must be made with render_mode='rgb_array'")
    return picture


def _cannot(name: str, error: Exception) -> S2acError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return S2acError(
        f"{name} cannot be rendered on this machine ({reason}): MuJoCo needs OpenGL (MUJOCO_GL=egl or osmesa without a "
        "display), classic control needs pygame (pip install 's2ac[video]')"
    )


def _imageio() -> Any:
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401
    except ModuleNotFoundError as error:
        raise InvalidArgument("an .mp4 needs imageio[ffmpeg]: pip install 's2ac[video]', or write a .gif") from error
    return imageio.v2


def _write(path: Path, frames: list[np.ndarray], fps: int) -> None:
    try:
        if path.suffix == ".gif":
            from PIL import Image

            images = [Image.fromarray(frame) for frame in frames]
            images[0].save(path, save_all=True, append_images=images[1:], duration=1000 // fps, loop=0)
        else:
            with warnings.catch_warnings(), _imageio().get_writer(path, fps=fps, macro_block_size=2) as writer:
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX's; ffmpeg is started, not forked on
                for frame in frames:
                    writer.append_data(frame)
    except OSError as error:
        raise S2acError(f"cannot write {path}: {error}") from error


def run_play(run: Path, video: str, episodes: int, select: str) -> None:
    """The command `play`."""
    made = play(load(run), video, episodes, select)
    print(f"{made.file}: {made.frames} frames, returns {', '.join(f'{value:.1f}' for value in made.returns)}")
