"""The crash harness: real consumers on real servers, killed at random moments, and a verdict over what is left."""
