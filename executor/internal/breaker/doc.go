// Package breaker leaves alone for a while what keeps failing: a circuit breaker for each key.
//
//	closed → open      as many calls in a row failed as [Options] say
//	open → half-open   the time is up: one call, the probe, is let through
//	half-open → open   the probe failed
//	half-open → closed the probe succeeded
//
// What calls report that began before the circuit last opened changes nothing, for it says
// nothing about how things are now. A probe that does not report in the time for which a
// circuit is open is given up, and another call becomes the probe.
package breaker
