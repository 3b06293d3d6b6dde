"""How much stack a fiber needs at most, from what gcc -fcallgraph-info=su wrote when the program was compiled."""
