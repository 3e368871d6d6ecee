"""The survey: the implementations that the project tests, their packages, and what is known about them."""
