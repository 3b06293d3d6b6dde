"""How much stack a fiber needs at most, by what gcc -fcallgraph-info=su wrote down when the program was compiled."""
