"""Work done elsewhere: a core function in a process of its own, with progress, cancel and limits.

Files that people upload are read in such a process, because a crafted file may crash or
exhaust whatever reads it. Only JSON comes back from there, never a pickle: after reading a
hostile file the process may say anything, so its words are data and nothing more. Arrays come
back as files in the result's folder.

A job outlives the page that began it. Its result is stored under a digest of what it was
computed from, and the next server reports a job whose server died as interrupted.
"""

from kdcal_core.jobs.limits import TRIAL_SECONDS, trial
from kdcal_core.jobs.manager import JobManager, jobs
from kdcal_core.jobs.outcome import Cancelled, lack_of_memory
from kdcal_core.jobs.records import JobSnapshot, JobState, default_root, job_key
from kdcal_core.jobs.runner import prepare_workers, run_limited
from kdcal_core.jobs.sandbox import Confinement, confinement

__all__ = [
    "TRIAL_SECONDS",
    "Cancelled",
    "Confinement",
    "JobManager",
    "JobSnapshot",
    "JobState",
    "confinement",
    "default_root",
    "job_key",
    "jobs",
    "lack_of_memory",
    "prepare_workers",
    "run_limited",
    "trial",
]


def __dir__() -> list[str]:
    return sorted(__all__)
