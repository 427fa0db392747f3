"""The command `play`."""

from dataclasses import dataclass

import tyro


@dataclass(frozen=True)
class Play:
    """Play episodes with a trained run and write a video. MuJoCo's tasks need OpenGL, classic control needs pygame."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name."""

    video: str = "play.gif"
    """The file, .mp4 or .gif."""

    episodes: int = 3
    """Episodes to play."""

    select: str = "sample"
    """The selection rule."""

    def __call__(self) -> None:
        """Play."""
        from s2ac.agent import load
        from s2ac.deploy.video import play

        made = play(load(self.run), self.video, self.episodes, self.select)
        print(f"{made.file}: {made.frames} frames, returns {', '.join(f'{value:.1f}' for value in made.returns)}")
