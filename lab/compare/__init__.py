"""Runs ramie and its peers alternately, and reports which differences the figures support. See lab/README.md."""
