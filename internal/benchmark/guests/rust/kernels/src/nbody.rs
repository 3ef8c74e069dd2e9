use crate::{mix, Random, CHECKSUM_SEED};

/// A point or a velocity in space.
#[derive(Clone, Copy)]
struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

impl Vector {
    fn minus(self, o: Vector) -> Vector {
        Vector { x: self.x - o.x, y: self.y - o.y, z: self.z - o.z }
    }

    fn dot(self, o: Vector) -> f64 {
        self.x * o.x + self.y * o.y + self.z * o.z
    }

    fn plus_scaled(self, o: Vector, by: f64) -> Vector {
        Vector { x: self.x + o.x * by, y: self.y + o.y * by, z: self.z + o.z * by }
    }
}

struct Body {
    position: Vector,
    velocity: Vector,
    mass: f64,
}

fn random_body(source: &mut Random) -> Body {
    Body {
        position: Vector { x: source.unit() * 40.0, y: source.unit() * 40.0, z: source.unit() * 40.0 },
        velocity: Vector { x: source.unit() - 0.5, y: source.unit() - 0.5, z: source.unit() - 0.5 },
        mass: source.unit() + 0.25,
    }
}

fn step(bodies: &mut [Body], seconds: f64) {
    for i in 0..bodies.len() {
        for j in i + 1..bodies.len() {
            let apart = bodies[i].position.minus(bodies[j].position);
            let squared = apart.dot(apart);
            let pull = seconds / (squared * squared.sqrt());
            bodies[i].velocity = bodies[i].velocity.plus_scaled(apart, -bodies[j].mass * pull);
            bodies[j].velocity = bodies[j].velocity.plus_scaled(apart, bodies[i].mass * pull);
        }
    }
    for body in bodies {
        body.position = body.position.plus_scaled(body.velocity, seconds);
    }
}

fn energy(bodies: &[Body]) -> f64 {
    let mut total = 0.0;
    for (i, a) in bodies.iter().enumerate() {
        total += 0.5 * a.mass * a.velocity.dot(a.velocity);
        for b in &bodies[i + 1..] {
            let apart = a.position.minus(b.position);
            total -= a.mass * b.mass / apart.dot(apart).sqrt();
        }
    }
    total
}

/// Moves five bodies through size steps under each other's gravity; the checksum is their energy.
#[no_mangle]
pub extern "C" fn nbody(size: i32) -> u64 {
    let mut source = Random(4);
    let mut bodies: Vec<Body> = (0..5).map(|_| random_body(&mut source)).collect();
    for _ in 0..size {
        step(&mut bodies, 0.01);
    }
    mix(CHECKSUM_SEED, energy(&bodies).to_bits())
}
