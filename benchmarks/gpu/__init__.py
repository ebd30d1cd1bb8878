"""What GPUs would do: on paper for those that are not there, measured for one that is."""
