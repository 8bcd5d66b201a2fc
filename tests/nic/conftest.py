"""One virtual machine for all tests of a file, because booting is slow."""

import pytest
from guest import Guest


@pytest.fixture(scope="module")
def files():
    """Files for /usr/share of the virtual machine. A test file that needs some overrides this fixture."""
    return []


@pytest.fixture(scope="module")
def guest(request, tmp_path_factory, files):
    """Boots a virtual machine with the cards and programs of the test file."""
    programs = getattr(request.module, "PROGRAMS", [])
    guest = Guest(tmp_path_factory.mktemp("guest"), request.module.CARDS, programs, files)
    yield guest
    guest.end()
