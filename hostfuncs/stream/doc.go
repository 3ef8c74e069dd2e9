// Package stream lets a tool say something before its call has ended: a piece of text, how far it
// has come, an image that is not done yet.
//
//	session := stream.Open(stream.Options{Emit: host.Emit, Bytes: 256 << 10, Mask: mask})
//	err := session.Admit(len(request))
//	err = session.Emit(ctx, emission)
//
// It needs no permission: what is said goes to whoever watches the call, as its result will, and
// nowhere else. So it is bounded as the result is, and secrets are taken out of it as of the result.
// Each emission is masked by itself: a value that a tool has learned in a form of its own and says
// in two halves is not recognized.
//
// What a tool is told does not depend on whether anybody watches: equal calls go on equally.
//
// It is for the runtime: its API promises no compatibility.
package stream
