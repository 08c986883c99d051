"""The principal: the sender of a request, with its scope, clearance and role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from adapters import Scope, Sensitivity

Role: TypeAlias = Literal["none", "reader", "admin", "operator"]
"""``reader`` may search and read; ``admin`` may also write; ``operator`` may also read the counters of all tenants;
``none`` may do none of these."""


_ROLES: tuple[Role, ...] = ("none", "reader", "admin", "operator")


class Forbidden(Exception):
    """The principal is known and may not do this."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A scope, a clearance and a role.

    :param name: for the log: the name of the API key.
    """

    name: str
    scope: Scope
    clearance: Sensitivity
    role: Role = "reader"

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


def anonymous_operator(scope: Scope, clearance: Sensitivity) -> Principal:
    """The sender of every request if there are no keys, and the user of the command line."""
    return Principal("anonymous", scope, clearance, "operator")
