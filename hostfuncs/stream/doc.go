// Package stream lets a tool emit output before its call has ended: a piece of text, its progress, an unfinished image.
//
//	session := stream.Open(stream.Options{Emit: host.Emit, Bytes: 256 << 10, Mask: mask})
//	err := session.Admit(len(request))
//	err = session.Emit(ctx, emission)
//
// Emitting needs no permission: emissions go only to those who watch the call, and they will get its result too. So
// emissions are bounded and secrets are masked in them, as in the result. Each emission is masked separately: a secret
// that a tool splits between two emissions is not recognized.
//
// The tool cannot tell whether anyone watches, so equal calls behave equally.
//
// The package is for the runtime. Its API carries no compatibility promise.
package stream
