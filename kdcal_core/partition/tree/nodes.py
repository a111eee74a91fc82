"""A tree's nodes as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.partition.tree.conditions import Condition


@dataclass(frozen=True)
class TreeNode:
    """A node as it is drawn: where it hangs, its rows at growth, and the branch that leads to it.

    ``leaf`` is the leaf's index, None inside; ``condition`` is None at the root.
    """

    node: int
    parent: int | None
    depth: int
    n: int
    leaf: int | None
    condition: Condition | None

    @property
    def words(self) -> str:
        return "all rows" if self.condition is None else self.condition.words
