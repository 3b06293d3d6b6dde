"""Makes one page of HTML from a results file of ./run compare."""
