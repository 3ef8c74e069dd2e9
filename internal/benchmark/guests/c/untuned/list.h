// The names of the kernels in this folder, for the command.
#define KERNELS(K) \
    K(lz77) K(regex) K(interpreter) K(expression)
