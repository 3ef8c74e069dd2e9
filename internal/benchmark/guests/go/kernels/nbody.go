package kernels

import "math"

// vector is a point or a velocity in space.
type vector struct{ x, y, z float64 }

// dot rounds each product by itself, so that a fused multiply-add cannot change the sum.
func (v vector) dot(o vector) float64 {
	return float64(v.x*o.x) + float64(v.y*o.y) + float64(v.z*o.z)
}

func (v vector) minus(o vector) vector { return vector{v.x - o.x, v.y - o.y, v.z - o.z} }

func (v vector) plusScaled(o vector, by float64) vector {
	return vector{v.x + float64(o.x*by), v.y + float64(o.y*by), v.z + float64(o.z*by)}
}

type body struct {
	position, velocity vector
	mass               float64
}

// NBody moves five bodies through size steps under each other's gravity; the checksum is
// their energy.
func NBody(size int32) uint64 {
	var bodies [5]body
	source := random(4)
	for i := range bodies {
		bodies[i] = body{
			position: vector{source.unit() * 40, source.unit() * 40, source.unit() * 40},
			velocity: vector{source.unit() - 0.5, source.unit() - 0.5, source.unit() - 0.5},
			mass:     source.unit() + 0.25,
		}
	}
	for range size {
		step(bodies[:], 0.01)
	}
	return mix(checksumSeed, math.Float64bits(energy(bodies[:])))
}

func step(bodies []body, seconds float64) {
	for i := range bodies {
		for j := i + 1; j < len(bodies); j++ {
			a, b := &bodies[i], &bodies[j]
			apart := a.position.minus(b.position)
			squared := apart.dot(apart)
			pull := seconds / (squared * math.Sqrt(squared))
			a.velocity = a.velocity.plusScaled(apart, -b.mass*pull)
			b.velocity = b.velocity.plusScaled(apart, a.mass*pull)
		}
	}
	for i := range bodies {
		bodies[i].position = bodies[i].position.plusScaled(bodies[i].velocity, seconds)
	}
}

func energy(bodies []body) float64 {
	var total float64
	for i := range bodies {
		a := &bodies[i]
		total += float64(0.5 * a.mass * a.velocity.dot(a.velocity))
		for j := i + 1; j < len(bodies); j++ {
			apart := a.position.minus(bodies[j].position)
			total -= a.mass * bodies[j].mass / math.Sqrt(apart.dot(apart))
		}
	}
	return total
}
