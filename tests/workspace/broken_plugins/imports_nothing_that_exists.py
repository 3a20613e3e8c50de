import a_package_that_is_nowhere  # noqa: F401
