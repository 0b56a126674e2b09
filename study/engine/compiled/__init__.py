"""What both compiled engines share."""
