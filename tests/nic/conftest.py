"""One machine for all tests of a file: booting it takes longest."""

import pytest
from guest import Guest


@pytest.fixture(scope="module")
def guest(request, tmp_path_factory):
    """With the cards that the file names, all on one network."""
    guest = Guest(tmp_path_factory.mktemp("guest"), request.module.CARDS)
    yield guest
    guest.end()
