"""What MuJoCo does silently: states that it resets, and a log in the working directory."""

from typing import Any


def bad_states(data: Any) -> list[Any]:
    """The counters of the warnings that MuJoCo resets its state at; none in data that are not MuJoCo's."""
    warnings = getattr(data, "warning", None)
    if warnings is None:
        return []
    from mujoco import mjtWarning as kind

    return [
        warnings[int(which)]
        for which in (kind.mjWARN_BADQPOS, kind.mjWARN_BADQVEL, kind.mjWARN_BADQACC, kind.mjWARN_BADCTRL)
    ]


def quiet_mujoco() -> None:
    """MuJoCo writes its warnings to MUJOCO_LOG.TXT in the working directory; we read its counters instead."""
    import mujoco

    mujoco.set_mju_user_warning(lambda message: None)
