#include "../kernels/kernels.h"

enum { walks = 16 };

struct node {
    uint32_t key;
    struct node *left, *right;
};

// walk folds the keys into a checksum, and returns the height.
static uint32_t walk(const struct node *n, uint64_t *checksum) {
    if (!n) return 0;
    uint32_t left = walk(n->left, checksum);
    *checksum = mix(*checksum, n->key);
    uint32_t right = walk(n->right, checksum);
    return 1 + (left > right ? left : right);
}

// Inserts size random keys into a search tree, and walks it in order several times.
KERNEL(tree_walk) {
    uint64_t source = 14, checksum = checksum_seed;
    struct node *nodes = allocate_zeroed(positive(size), sizeof *nodes), *root = NULL;
    for (size_t i = 0; i < positive(size); i++) {
        struct node **at = &root;
        nodes[i].key = next(&source);
        while (*at) at = nodes[i].key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = &nodes[i];
    }
    for (int i = 0; i < walks; i++) {
        uint32_t height = walk(root, &checksum);
        checksum = mix(checksum, height);
    }
    free(nodes);
    return checksum;
}
