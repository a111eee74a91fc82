"""The exception that stands for "stop, please", on both sides of a job."""


class Cancelled(Exception):  # noqa: N818 - asked for, so not an error
    """The work was cancelled because somebody asked for it."""
