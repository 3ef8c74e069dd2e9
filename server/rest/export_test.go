package rest

import "github.com/caisson-run/caisson/server/auth"

// LateAnswer is the longest wait for an answer whose request has ended.
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
