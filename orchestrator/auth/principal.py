"""The principal: the sender of a request, with its scope, clearance and role."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from adapters import Scope, Sensitivity, Viewer

Role: TypeAlias = Literal["none", "reader", "admin", "operator"]
"""``reader`` may search and read; ``admin`` may also write; ``operator`` may also read the counters of all tenants;
``none`` may do none of these."""


_ROLES: tuple[Role, ...] = ("none", "reader", "admin", "operator")


class Forbidden(Exception):
    """The principal is known and may not do this."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A scope, what it may see there, and a role.

    :param name: for the log: the name of the API key.
    :param user: on whose behalf it acts, and ``teams``: of the user; see :class:`adapters.Viewer`.
    """

    name: str
    scope: Scope
    clearance: Sensitivity
    role: Role = "reader"
    user: str | None = None
    teams: tuple[str, ...] = ()

    @property
    def viewer(self) -> Viewer:
        """What it may see in its scope."""
        return Viewer(self.clearance, self.user, self.teams)

    def on_behalf_of(self, user: str | None, teams: tuple[str, ...]) -> Principal:
        """This principal for a request that names a user or teams.

        :raises Forbidden: if it has a user or teams already.
        """
        if self.viewer.is_narrowed:
            raise Forbidden(f"{self.name!r} acts for a user or teams already: a request names no others")
        return replace(self, user=user, teams=distinct(teams))

    def may(self, role: Role) -> bool:
        """Whether the principal has at least this role."""
        return _ROLES.index(self.role) >= _ROLES.index(role)

    def require(self, role: Role) -> None:
        """Check that the principal has at least this role.

        :raises Forbidden: if it does not.
        """
        if not self.may(role):
            raise Forbidden(f"the key {self.name!r} has the role {self.role!r}, this needs {role!r}")


UNAUTHENTICATED = Principal("unauthenticated", Scope("", ""), "public", "none")
"""The sender of a request that needs no role."""


def distinct(teams: Iterable[str]) -> tuple[str, ...]:
    """Teams as a principal has them: sorted, each once."""
    return tuple(sorted(set(teams)))


def anonymous_operator(
    scope: Scope, clearance: Sensitivity, user: str | None = None, teams: tuple[str, ...] = ()
) -> Principal:
    """The sender of every request if there are no keys, and the user of the command line."""
    return Principal("anonymous", scope, clearance, "operator", user, distinct(teams))
