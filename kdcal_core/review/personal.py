"""The reviews of one person in a workspace that others use too."""

from __future__ import annotations

from pathlib import Path

from kdcal_core.errors import InputError
from kdcal_core.review.review import Owner, Review
from kdcal_core.review.workspace import STATE, Workspace


class PersonalWorkspace(Workspace):
    """A workspace in which only one person's reviews exist.

    Reviews of others are neither listed nor found: whoever gives the id of one gets the same answer
    as for an id that does not exist. What is created here belongs to this person.

    Parameters
    ----------
    owner : tuple of str or None
        The provider that identified the person, and its identifier for them. None stands for
        whoever uses a machine where nobody signs in: then only reviews without an owner exist.
    root : Path, optional
        As of `Workspace`.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> ann = PersonalWorkspace(("https://id.example.org", "ann"), root)
    >>> review_id = ann.create()
    >>> ben = PersonalWorkspace(("https://id.example.org", "ben"), root)
    >>> ann.exists(review_id), ben.exists(review_id)
    (True, False)
    """

    def __init__(self, owner: Owner | None, root: Path | None = None) -> None:
        super().__init__(root)
        self.owner = owner

    def reviews(self) -> tuple[tuple[Review, float], ...]:
        """As of `Workspace`, of this person's reviews."""
        return tuple(one for one in super().reviews() if one[0].owner == self.owner)

    def _find(self, review_id: str) -> Path | None:
        folder = super()._find(review_id)
        return folder if folder is not None and self._is_ours(folder) else None

    def _is_ours(self, folder: Path) -> bool:
        try:
            review, _ = self._at(folder / STATE, folder.name)
        except InputError:  # damaged, so that nobody knows whose it is: reading it says so
            return self.owner is None
        return review.owner == self.owner

    def _write(self, folder: Path, review: Review) -> None:
        super()._write(folder, review.owned_by(self.owner))

    def _prune(self) -> None:
        Workspace(self.root)._prune()  # everybody's, whoever comes first
