"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# the ordinary suite tries the same examples each time; HYPOTHESIS_PROFILE=explore looks for new ones
settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", max_examples=1000, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
