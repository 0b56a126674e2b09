"""The counter-based random stream: a trial's numbers don't depend on its pack or its device."""
