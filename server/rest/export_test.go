package rest

import "github.com/caisson-run/caisson/server/auth"

// LateAnswer is how long an answer is waited for when its request has ended.
const LateAnswer = lateAnswer

// Stop is the first step of Close.
func (a *API) Stop() { a.stop() }

// Occupy makes two answers to a caller, which take until leave is called. No others can be made.
func (a *API) Occupy(c auth.Caller) (leave func()) {
	slots := a.slots(c)
	for range 2 {
		slots <- struct{}{}
	}
	return func() {
		for range 2 {
			<-slots
		}
	}
}
