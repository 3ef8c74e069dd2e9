#include "textflag.h"

// The kernel's numbers, and siginfo.si_code of a timer's signal.
#define SYS_write 64
#define SYS_ppoll 73
#define SYS_exit_group 94
#define SYS_timer_settime 110
#define SI_TIMER -2

// A struct pollfd that asks whether stderr takes anything at once (POLLOUT).
DATA stderr<>+0(SB)/4, $2
DATA stderr<>+4(SB)/2, $4
DATA stderr<>+6(SB)/2, $0
GLOBL stderr<>(SB), NOPTR, $8

// A struct timespec of no time.
GLOBL immediately<>(SB), NOPTR, $16

// func handlerAddress() uintptr
TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	MOVD $handler<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func restorerAddress() uintptr
TEXT ·restorerAddress(SB), NOSPLIT, $0-8
	MOVD ZR, ret+0(FP)
	RET

// The kernel calls it with the signal in R0 and its siginfo in R1, on the thread's signal stack. It
// neither calls Go nor needs anything of it: no thread may be able to run Go's code any more.
TEXT handler<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVW 8(R1), R2
	CMPW $SI_TIMER, R2
	BNE  back
	MOVD $·armed(SB), R3
	LDARW (R3), R2
	CBZW R2, back
	MOVD $·strikes(SB), R3
again:
	LDAXRW (R3), R2
	ADDW  $1, R2, R4
	STLXRW R4, (R3), R5
	CBNZW R5, again
	CBNZW R2, end

	// The first time: what was suspended gets a moment.
	MOVW ·timerID(SB), R0
	MOVD ZR, R1
	MOVD $·grace(SB), R2
	MOVD ZR, R3
	MOVD $SYS_timer_settime, R8
	SVC
back:
	RET

end:
	MOVD $stderr<>(SB), R0
	MOVD $1, R1
	MOVD $immediately<>(SB), R2
	MOVD ZR, R3
	MOVD $8, R4
	MOVD $SYS_ppoll, R8
	SVC
	CMP  $1, R0
	BNE  exit
	MOVD $stderr<>(SB), R3
	MOVHU 6(R3), R2
	TBZ  $2, R2, exit
	MOVD ·text(SB), R1
	MOVD (R1), R2
	ADD  $8, R1, R1
	MOVD $2, R0
	MOVD $SYS_write, R8
	SVC
exit:
	MOVD $4, R0
	MOVD $SYS_exit_group, R8
	SVC
	B    exit
