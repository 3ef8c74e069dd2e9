// Package page reads one web page: its text, its links and what it says about itself.
//
// HTML is read as a stream of tokens, in one pass, by a model of open elements that is
// smaller than the standard's: it keeps enough of them to tell what is hidden, and where
// lists, tables and links end. A tree would be nearer to what browsers build, but a page can
// make one that is a hundred thousand times its own size. So any page takes time in
// proportion to its length, and memory that the [Options] bound.
//
// What a page hides from people is left out: it is no part of what they would read, and
// where pages put words that only a model should see. Style sheets and scripts are not run,
// so what they hide shows, and what they write is missing.
package page
