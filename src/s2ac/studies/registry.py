"""The studies, by name."""

from s2ac.studies import runtime
from s2ac.studies.entropy import study as entropy
from s2ac.studies.mujoco import study as mujoco
from s2ac.studies.multigoal import study as multigoal
from s2ac.studies.pointmaze import study as pointmaze
from s2ac.studies.study import Study

STUDIES: dict[str, Study] = {
    "entropy": entropy.STUDY,
    "multigoal": multigoal.STUDY,
    "mujoco": mujoco.STUDY,
    "pointmaze": pointmaze.STUDY,
    "runtime": runtime.STUDY,
}
