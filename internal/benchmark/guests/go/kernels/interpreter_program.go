package kernels

type opcode uint8

// What takes two values takes the upper one as its second: push a, push b, subtract is
// a - b. Store finds the address above the value.
const (
	opPush opcode = iota // the operand
	opDup
	opSwap
	opDrop
	opGet       // the local that the operand names
	opSet       // the local
	opIncrement // the local
	opAdd
	opSubtract
	opMultiply
	opDivide
	opRemainder
	opAnd
	opOr
	opXor
	opShiftLeft
	opShiftRight
	opEqual
	opLess
	opJump // to the operand
	opJumpIf
	opJumpUnless
	opLoad
	opStore
	opCall // the operand, with locals that are zero
	opReturn
	opHalt
)

type instruction struct {
	code    opcode
	operand uint64
}

// program counts the steps of Collatz's sequences, finds common divisors by recursion, and writes its intermediate
// totals to memory.
var program = []instruction{
	// main(limit), with 0: i, 1: total, 2: limit
	/*  0 */ {opSet, 2}, {opPush, 1}, {opSet, 0},
	/*  3 */ {opGet, 2}, {opGet, 0}, {opLess, 0}, {opJumpIf, 45},
	/*  7 */ {opGet, 0}, {opCall, 47}, {opGet, 1}, {opAdd, 0}, {opSet, 1},
	/* 12 */ {opGet, 0}, {opPush, 360360}, {opCall, 71}, {opGet, 1}, {opXor, 0}, {opSet, 1},
	/* 18 */ {opGet, 1}, {opDup, 0}, {opPush, 5}, {opShiftLeft, 0}, {opSwap, 0}, {opPush, 59}, {opShiftRight, 0},
	{opOr, 0}, {opSet, 1},
	/* 27 */ {opGet, 0}, {opPush, 7}, {opMultiply, 0}, {opPush, 255}, {opAnd, 0}, {opLoad, 0}, {opGet, 1}, {opSwap, 0},
	{opSubtract, 0}, {opSet, 1},
	/* 37 */ {opGet, 0}, {opPush, 255}, {opAnd, 0}, {opGet, 1}, {opCall, 83}, {opDrop, 0},
	/* 43 */ {opIncrement, 0}, {opJump, 3},
	/* 45 */ {opGet, 1}, {opHalt, 0},
	// collatz(n): how many steps lead to 1; with 0: n, 1: the steps
	/* 47 */ {opSet, 0},
	/* 48 */ {opGet, 0}, {opPush, 1}, {opEqual, 0}, {opJumpIf, 69},
	/* 52 */ {opIncrement, 1}, {opGet, 0}, {opPush, 2}, {opRemainder, 0}, {opJumpIf, 62},
	/* 57 */ {opGet, 0}, {opPush, 2}, {opDivide, 0}, {opSet, 0}, {opJump, 48},
	/* 62 */ {opGet, 0}, {opPush, 3}, {opMultiply, 0}, {opPush, 1}, {opAdd, 0}, {opSet, 0}, {opJump, 48},
	/* 69 */ {opGet, 1}, {opReturn, 0},
	// gcd(a, b), which calls itself; with 0: a, 1: b
	/* 71 */ {opSet, 1}, {opSet, 0}, {opGet, 1}, {opJumpUnless, 81},
	/* 75 */ {opGet, 1}, {opGet, 0}, {opGet, 1}, {opRemainder, 0}, {opCall, 71}, {opReturn, 0},
	/* 81 */ {opGet, 0}, {opReturn, 0},
	// exchange(address, new) returns the old value; with 0: address, 1: new
	/* 83 */ {opSet, 1}, {opSet, 0}, {opGet, 0}, {opLoad, 0}, {opGet, 1}, {opGet, 0}, {opStore, 0}, {opReturn, 0},
}
