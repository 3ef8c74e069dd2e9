#include "kernels.h"

#include <math.h>

enum { count = 5 };

struct vector { double x, y, z; };

struct body {
    struct vector position, velocity;
    double mass;
};

static struct vector minus(struct vector a, struct vector b) {
    return (struct vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static double dot(struct vector a, struct vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static struct vector plus_scaled(struct vector a, struct vector b, double by) {
    return (struct vector){a.x + b.x * by, a.y + b.y * by, a.z + b.z * by};
}

static void step(struct body bodies[count], double seconds) {
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            struct body *a = &bodies[i], *b = &bodies[j];
            struct vector apart = minus(a->position, b->position);
            double squared = dot(apart, apart);
            double pull = seconds / (squared * sqrt(squared));
            a->velocity = plus_scaled(a->velocity, apart, -b->mass * pull);
            b->velocity = plus_scaled(b->velocity, apart, a->mass * pull);
        }
    }
    for (int i = 0; i < count; i++) {
        bodies[i].position = plus_scaled(bodies[i].position, bodies[i].velocity, seconds);
    }
}

static double energy(const struct body bodies[count]) {
    double total = 0;
    for (int i = 0; i < count; i++) {
        const struct body *a = &bodies[i];
        total += 0.5 * a->mass * dot(a->velocity, a->velocity);
        for (int j = i + 1; j < count; j++) {
            struct vector apart = minus(a->position, bodies[j].position);
            total -= a->mass * bodies[j].mass / sqrt(dot(apart, apart));
        }
    }
    return total;
}

// Moves five bodies through size steps under each other's gravity; the checksum is their energy.
KERNEL(nbody) {
    struct body bodies[count];
    uint64_t source = 4;
    for (int i = 0; i < count; i++) {
        struct body *b = &bodies[i];
        b->position.x = unit(&source) * 40;
        b->position.y = unit(&source) * 40;
        b->position.z = unit(&source) * 40;
        b->velocity.x = unit(&source) - 0.5;
        b->velocity.y = unit(&source) - 0.5;
        b->velocity.z = unit(&source) - 0.5;
        b->mass = unit(&source) + 0.25;
    }
    for (int32_t i = 0; i < size; i++) step(bodies, 0.01);
    return mix_double(checksum_seed, energy(bodies));
}
