"""Settings of all tests."""

import hypothesis

# A busy machine must not fail a property.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")
