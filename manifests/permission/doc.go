// Package permission has the values that permissions are made of. What a manifest asks for, what a
// policy or a flag grants, what is denied, and what a guest then uses are read into the same
// values here, and here alone: two readers of one text are two opinions of what it allows.
//
// Each value is read once from text, has one spelling, which String returns and which reads as
// the same value again, and can be compared: Matches says whether something that a guest names is
// among what the value is about, Covers whether all that another value is about is, and Intersect
// returns what two values are both about. The zero value of each is about nothing.
//
// What cannot be read is an [*Error], which matches [ErrInvalid]. Texts may come from anybody:
// nothing panics. All values are immutable and safe for concurrent use.
package permission
