// Package output decides how much of a tool's result goes to a model, and keeps what does
// not for a session, so that it can be read page by page.
//
//	store, err := output.NewStore(output.Options{})
//	result, cuts := output.Cut(result, 32<<10, store.Keeper(reference), mark)
//	page, err := store.Page(cuts[0].Reference, 0, 0)
//
// # Room
//
// A result that fits is left as it is. In one that does not, the parts have room in the
// order error, output, data, content: error is what a model acts on. Each takes what the
// parts behind it do not need, and is sure of a share where they need more than there is:
// error of half of the room, output of three quarters of what error leaves, data of half of
// what output leaves, or of the output's share if there is none. So a long output does not
// drive out a small value, nor the other way round.
//
// Text is cut at its end, between characters, and the mark follows on a line of its own.
// data is JSON and is there in whole or not at all; the output then ends with its mark. Where
// output is nothing but data as text, one of them is enough: data alone if it has room, which
// cuts nothing, and otherwise the cut output.
//
// Parts of the content share their room evenly, and what small ones leave goes to the others.
// A part with binary data is there in whole or not at all; a part of type text then says in
// its place what it was, and so does one for all parts together for which there is no place.
package output
