// Package terminal writes text that a person can read in a terminal and paste into its shell without being deceived: it
// escapes characters that change the terminal or hide text, quotes words for a shell, and aligns columns.
package terminal
