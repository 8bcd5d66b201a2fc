"""One machine for all tests of a file: booting it takes longest."""

import pytest
from guest import Guest


@pytest.fixture(scope="module")
def files():
    """What the machine has in /usr/share; a file of tests that needs some says so by a fixture of the same name."""
    return []


@pytest.fixture(scope="module")
def guest(request, tmp_path_factory, files):
    """With the cards and programs that the file names."""
    programs = getattr(request.module, "PROGRAMS", [])
    guest = Guest(tmp_path_factory.mktemp("guest"), request.module.CARDS, programs, files)
    yield guest
    guest.end()
