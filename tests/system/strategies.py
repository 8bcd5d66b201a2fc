"""Names of the built-in strategies, for tests of rules that hold for each strategy."""

import re
from pathlib import Path

DOCUMENTATION = Path(__file__).parents[2] / "docs/strategies.md"
# From the first table of the page, which a test of the engine compares with the strategies.
STRATEGIES = re.findall(r"^\| `([a-z-]+)` \| \d+ \| [a-z]", DOCUMENTATION.read_text(), re.MULTILINE)
assert "best-route" in STRATEGIES and "multicast" in STRATEGIES
# Strategies that send Interests.
FORWARDING = [name for name in STRATEGIES if name != "reject"]
