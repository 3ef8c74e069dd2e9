// Package rates bounds how many calls begin in a time, for each key by itself.
//
// A key has a bucket of calls, full at first. Each call takes one, and the bucket refills
// evenly. So as many calls as the bucket holds may come at once; in any window of the time
// in which it refills, no more than twice as many begin, and in the long run only as many.
package rates
