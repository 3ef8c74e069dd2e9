// The names of the kernels in this folder, for the command.
#define KERNELS(K) \
    K(fib) K(ackermann) K(tree_walk) K(evaluator) K(sort) K(parser) K(mutual) K(table)
