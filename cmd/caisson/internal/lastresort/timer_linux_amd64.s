#include "textflag.h"

// The kernel's numbers, and siginfo.si_code of a timer's signal.
#define SYS_write 1
#define SYS_poll 7
#define SYS_rt_sigreturn 15
#define SYS_timer_settime 223
#define SYS_exit_group 231
#define SI_TIMER -2

// A struct pollfd that asks whether stderr takes anything at once (POLLOUT).
DATA stderr<>+0(SB)/4, $2
DATA stderr<>+4(SB)/2, $4
DATA stderr<>+6(SB)/2, $0
GLOBL stderr<>(SB), NOPTR, $8

// func handlerAddress() uintptr
TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	LEAQ handler<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func restorerAddress() uintptr
TEXT ·restorerAddress(SB), NOSPLIT, $0-8
	LEAQ restorer<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// The kernel calls it with the signal in DI and its siginfo in SI, on the thread's signal stack. It
// neither calls Go nor needs anything of it: no thread may be able to run Go's code any more.
TEXT handler<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	CMPL 8(SI), $SI_TIMER
	JNE  back
	CMPL ·armed(SB), $0
	JEQ  back
	MOVL $1, AX
	LOCK
	XADDL AX, ·strikes(SB)
	TESTL AX, AX
	JNE  end

	// The first time: what was suspended gets a moment.
	MOVLQSX ·timerID(SB), DI
	XORL SI, SI
	LEAQ ·grace(SB), DX
	XORL R10, R10
	MOVL $SYS_timer_settime, AX
	SYSCALL
back:
	RET

end:
	LEAQ stderr<>(SB), DI
	MOVL $1, SI
	XORL DX, DX
	MOVL $SYS_poll, AX
	SYSCALL
	CMPQ AX, $1
	JNE  exit
	TESTW $4, stderr<>+6(SB)
	JEQ  exit
	MOVQ ·text(SB), SI
	MOVQ 0(SI), DX
	ADDQ $8, SI
	MOVL $2, DI
	MOVL $SYS_write, AX
	SYSCALL
exit:
	MOVL $4, DI
	MOVL $SYS_exit_group, AX
	SYSCALL
	JMP  exit

TEXT restorer<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVL $SYS_rt_sigreturn, AX
	SYSCALL
	INT  $3
