"""Runs ramie and its peers in turns, and says which differences the figures support. See lab/README.md."""
