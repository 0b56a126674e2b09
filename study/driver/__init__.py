"""The process that runs a study: what it uses, watches, shows and publishes."""
