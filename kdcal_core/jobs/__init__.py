"""Work done elsewhere: a core function in a process of its own, with progress, cancel and limits.

Files that people upload are read in such a process, because a crafted file may crash or
exhaust whatever reads it. Only JSON comes back from there, never a pickle: after reading a
hostile file the process may say anything, so its words are data and nothing more.
"""

from kdcal_core.jobs.manager import JobManager, JobSnapshot, JobState, jobs
from kdcal_core.jobs.runner import DEFAULT_MEMORY_BYTES, Cancelled, Progress, run_limited

__all__ = [
    "DEFAULT_MEMORY_BYTES",
    "Cancelled",
    "JobManager",
    "JobSnapshot",
    "JobState",
    "Progress",
    "jobs",
    "run_limited",
]
