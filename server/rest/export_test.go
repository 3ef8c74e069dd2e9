package rest

// Stop is the first step of Close.
func (a *API) Stop() { a.stop() }
