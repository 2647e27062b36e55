"""What holds for all tests: no time limit on a single example, since other work may share the processor."""

from hypothesis import HealthCheck, settings

settings.register_profile("warren", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("warren")
