"""Checks that a changed version of a library makes another trial."""

from __future__ import annotations

from tsadbench.sandbox import describe
from tsadbench.testing.check import Group, Warned
from tsadbench.testing.detector_under_test import BoxedSubject
from tsadbench.utils.distributions import OWN, distributions_of, normalised, required_by_core, requirements
from tsadbench.utils.import_lookup import package_of

group = Group("reproducibility")


@group.boxed_check("libraries", "The libraries that a fit loads are those that its files import or its class declares.")
def libraries(subject: BoxedSubject) -> None:
    """Ask a box which packages it has loaded to construct, to fit and to score."""
    source = subject.construction.source
    description = describe(source)
    own = {package_of(module) for module in source.modules}
    named = {name for package in description.imported for name in distributions_of(package)}
    known = {OWN, *required_by_core(), *requirements([*named, *description.libraries], extras=True)}
    of_package = {
        package: {normalised(name): name for name in distributions_of(package)}
        for package in subject.importers.keys() - own
    }
    explained = [package for package, names in of_package.items() if names.keys() <= known]
    unexplained = {package: names for package, names in of_package.items() if not names.keys() <= known}
    for package in explained:  # grows: what a known library imports without requiring it is known by its version too
        for other in [one for one in unexplained if package in subject.importers[one]]:
            explained.append(other)
            del unexplained[other]
    # What a hidden library imports is explained when that one is declared.
    roots = {package for package in unexplained if not subject.importers[package] & unexplained.keys()}
    hidden = sorted({name for package in roots or unexplained for name in unexplained[package].values()})
    if hidden:
        declaration = ", ".join(f'"{name}"' for name in hidden)
        raise Warned(
            f"its fit loads {', '.join(hidden)}, which its files do not import by name: with another version of it, a "
            f"kept trial would still count as done; declare it in the class: libraries = ({declaration},)",
            hidden=list(hidden),
        )
