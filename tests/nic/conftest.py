"""One machine for all tests of a file: booting it takes longest."""

import pytest
from guest import Guest


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """Two cards of Intel, one of VMware, all on one network."""
    guest = Guest(tmp_path_factory.mktemp("guest"), ["e1000e", "e1000e", "vmxnet3"])
    yield guest
    guest.end()
