"""People of the tests: one whom nobody checked, three who signed in."""

from kdcal_core.audit import Person

ME = Person("Me", believed="a test")
ANN, BEN, EVE = (
    Person(name, "https://id.example.org", f"subject-{name}", "a test")
    for name in ("Ann", "Ben", "Eve")
)
