"""A trained agent at play, as a video file. Multigoal renders everywhere; MuJoCo where there is OpenGL."""

import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np

from s2ac.deploy.source import Trained
from s2ac.envs.as_gymnasium import AsGymnasium
from s2ac.envs.gymnasium.adapter import HostEnvs, registered
from s2ac.envs.gymnasium.repeat import repeating
from s2ac.envs.gymnasium.simulators import MakeEnv
from s2ac.envs.jax_env import JaxEnv
from s2ac.envs.registry import EnvLike, entry_of, environment
from s2ac.errors import InvalidArgument, S2acError, check_count, check_name
from s2ac.training.evaluate import EVALUATION, HostPlayer

ENDINGS = (".mp4", ".gif")
HOLD = 5  # frames that an episode's last picture stays


class Video(NamedTuple):
    """What was written."""

    file: Path
    frames: int
    returns: list[float]


def play(
    agent: Trained,
    file: str | Path,
    episodes: int = 3,
    select: str = "sample",
    *,
    seed_index: int = 0,
    env: EnvLike | None = None,
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
    name = agent.env_name
    given, own = environment(env) if env is not None else (name, None)
    if isinstance(own, JaxEnv):
        own = partial(AsGymnasium, own, "rgb_array")
    make = repeating(own or partial(rendered, given), agent.config.action_repeat)
    envs = HostEnvs(make, name, [seed_index], episodes, EVALUATION, once=True, spec=agent.spec)
    try:
        films, returns = _films(agent, make, envs, select, seed_index)
        fps = max(1, round(envs.envs[0][0].metadata.get("render_fps", 30) / agent.config.action_repeat))
    finally:
        envs.close()
    frames = [frame for film in films for frame in [*film, *[film[-1]] * HOLD]]
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, frames, fps)
    return Video(path, len(frames), returns)


def _films(
    agent: Trained, make: MakeEnv, envs: HostEnvs, select: str, seed_index: int
) -> tuple[list[list[np.ndarray]], list[float]]:
    """The pictures of every environment's first episode, and their returns."""
    cameras, name = envs.envs[0], agent.env_name
    films = [[_picture(camera, name)] for camera in cameras]
    alive, total = np.ones(len(cameras), bool), np.zeros(len(cameras))
    player = HostPlayer(make, name, agent.algorithm, agent.spec, [seed_index])
    states = jax.tree.map(lambda leaf: leaf[None], agent.policy_state(seed_index))
    for _, step in player.steps(states, (select,), envs):
        total += alive * step.reward[0, 0]
        for index in np.flatnonzero(alive):
            films[index].append(_picture(cameras[index], name))
        alive &= np.maximum(step.terminated, step.truncated)[0, 0] == 0
        if not alive.any():
            return films, total.tolist()
    raise AssertionError("steps go on as long as they are asked for")


def rendered(name: str) -> gymnasium.Env:
    """The environment, ready to give pictures; one line if it cannot here."""
    entry = entry_of(name)
    if entry and not entry.gymnasium:
        if entry.make().render is None:
            raise S2acError(f"{name} cannot be filmed: it has no pictures (JaxEnv.render)")
        return AsGymnasium(entry.make(), "rgb_array")
    if not entry and sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo's own default wants a display
    try:
        return gymnasium.make(registered(entry.gymnasium or name if entry else name), render_mode="rgb_array")
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
