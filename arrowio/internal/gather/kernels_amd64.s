#include "go_asm.h"
#include "textflag.h"

// Rows in lock-step, four at a time.
//
// SI pairs of the group   DI offset in the body   DX end of the body
// AX end of the block     BX offset in the block  CX where prefetching begins
// R8 to R11 sources       R12 to R15 destinations
//
// Frame: source k at 16*k, destination k at 16*k+8, both moved on to where the
// body begins; at 64 the rows left, at 72 the next line to prefetch.

// MOVE copies one block of one row.
#define MOVE(STORE, src, dst, loop) \
	MOVQ DI, BX              \
loop: \
	VMOVDQU (src)(BX*1), Y0   \
	VMOVDQU 32(src)(BX*1), Y1 \
	VMOVDQU 64(src)(BX*1), Y2 \
	VMOVDQU 96(src)(BX*1), Y3 \
	STORE Y0, (dst)(BX*1)     \
	STORE Y1, 32(dst)(BX*1)   \
	STORE Y2, 64(dst)(BX*1)   \
	STORE Y3, 96(dst)(BX*1)   \
	ADDQ $128, BX             \
	CMPQ BX, AX               \
	JLT  loop

// BODY copies the body of four rows, block by block. Each of the last blocks
// prefetches a line of the next four.
#define BODY(STORE, block, copy, r0, r1, r2, r3) \
block: \
	CMPQ DI, CX                \
	JLT  copy                  \
	MOVQ 72(SP), BX            \
	ADDQ $64, 72(SP)           \
	MOVQ 64(SI), AX            \
	PREFETCHT0 (AX)(BX*1)      \
	MOVQ 80(SI), AX            \
	PREFETCHT0 (AX)(BX*1)      \
	MOVQ 96(SI), AX            \
	PREFETCHT0 (AX)(BX*1)      \
	MOVQ 112(SI), AX           \
	PREFETCHT0 (AX)(BX*1)      \
copy: \
	MOVQ block+40(FP), AX      \
	ADDQ DI, AX                \
	CMPQ AX, DX                \
	CMOVQGT DX, AX             \
	MOVE(STORE, R8, R12, r0)   \
	MOVE(STORE, R9, R13, r1)   \
	MOVE(STORE, R10, R14, r2)  \
	MOVE(STORE, R11, R15, r3)  \
	MOVQ AX, DI                \
	CMPQ DI, DX                \
	JLT  block

// func copyLockstep(pairs *pair, n, ahead, at, size, block int, streaming bool)
TEXT ·copyLockstep(SB), NOSPLIT, $80-49
	MOVQ pairs+0(FP), SI
	MOVQ n+8(FP), BX

group:
	MOVQ BX, 64(SP)
	MOVQ $4, CX
	CMPQ BX, CX
	CMOVQLT BX, CX
	SHLQ $4, CX

	// The body is what all rows copy in steps of 128 bytes. Streaming stores
	// want whole lines: then each row first copies up to 64 bytes to reach one.
	MOVQ size+32(FP), DX
	MOVQ at+24(FP), DI
	XORQ BX, BX
	XORQ R10, R10

prepare:
	MOVQ (SI)(BX*1), R8
	MOVQ 8(SI)(BX*1), R9
	ADDQ DI, R8
	ADDQ DI, R9
	CMPB streaming+48(FP), $0
	JEQ  prepared
	MOVQ R9, R11
	NEGQ R11
	ANDQ $63, R11
	JEQ  prepared
	ORQ  R11, R10
	VMOVDQU (R8), Y0
	VMOVDQU 32(R8), Y1
	VMOVDQU Y0, (R9)
	VMOVDQU Y1, 32(R9)
	ADDQ R11, R8
	ADDQ R11, R9

prepared:
	MOVQ R8, (SP)(BX*1)
	MOVQ R9, 8(SP)(BX*1)
	ADDQ $16, BX
	CMPQ BX, CX
	JLT  prepare

	TESTQ R10, R10
	JEQ  aligned
	SUBQ $64, DX

aligned:
	ANDQ $~127, DX
	XORQ DI, DI
	CMPQ CX, $64
	JNE  few
	MOVQ (SP), R8
	MOVQ 8(SP), R12
	MOVQ 16(SP), R9
	MOVQ 24(SP), R13
	MOVQ 32(SP), R10
	MOVQ 40(SP), R14
	MOVQ 48(SP), R11
	MOVQ 56(SP), R15

	// With another whole group behind this one, prefetch in the last four
	// blocks.
	MOVQ $0, 72(SP)
	MOVQ DX, CX
	MOVQ 64(SP), AX
	ADDQ ahead+16(FP), AX
	CMPQ AX, $8
	JLT  stores
	MOVQ block+40(FP), AX
	SHLQ $2, AX
	SUBQ AX, CX

stores:
	CMPB streaming+48(FP), $0
	JNE  stream
	BODY(VMOVDQU, store, storeBlock, store0, store1, store2, store3)
	JMP  tails
	BODY(VMOVNTDQ, stream, streamBlock, stream0, stream1, stream2, stream3)
	JMP  tails

	// Fewer than four rows: the same with a loop over the rows.
few:
	XORQ BX, BX

fewRow:
	MOVQ (SP)(BX*1), R8
	MOVQ 8(SP)(BX*1), R9
	VMOVDQU (R8)(DI*1), Y0
	VMOVDQU 32(R8)(DI*1), Y1
	VMOVDQU 64(R8)(DI*1), Y2
	VMOVDQU 96(R8)(DI*1), Y3
	VMOVDQU Y0, (R9)(DI*1)
	VMOVDQU Y1, 32(R9)(DI*1)
	VMOVDQU Y2, 64(R9)(DI*1)
	VMOVDQU Y3, 96(R9)(DI*1)
	ADDQ $16, BX
	CMPQ BX, CX
	JLT  fewRow
	ADDQ $128, DI
	CMPQ DI, DX
	JLT  few

	// What is left of each row after the body: 32 bytes at a time, the last
	// ones overlapping.
tails:
	MOVQ 64(SP), CX
	MOVQ $4, AX
	CMPQ CX, AX
	CMOVQGT AX, CX
	SHLQ $4, CX
	XORQ BX, BX

tail:
	MOVQ (SI)(BX*1), R10
	ADDQ at+24(FP), R10
	ADDQ size+32(FP), R10
	MOVQ (SP)(BX*1), R8
	MOVQ 8(SP)(BX*1), R9
	SUBQ R8, R10             // from the body's beginning to the row's end
	MOVQ DX, DI

tail32:
	LEAQ 32(DI), AX
	CMPQ AX, R10
	JGT  rest
	VMOVDQU (R8)(DI*1), Y0
	VMOVDQU Y0, (R9)(DI*1)
	MOVQ AX, DI
	JMP  tail32

rest:
	CMPQ DI, R10
	JEQ  tailDone
	VMOVDQU -32(R8)(R10*1), Y0
	VMOVDQU Y0, -32(R9)(R10*1)

tailDone:
	ADDQ $16, BX
	CMPQ BX, CX
	JLT  tail

	ADDQ $64, SI
	MOVQ 64(SP), BX
	SUBQ $4, BX
	JGT  group
	CMPB streaming+48(FP), $0
	JEQ  done
	SFENCE

done:
	VZEROUPPER
	RET

// Short rows.
//
// SI address of the row's address   CX rows left      DX destination of the row
// AX source of the run              DI destination    BX runs left
// R8 source offset    R9 run        R10 count         R11 stride
// R12 rows left to prefetch for     R13 the burst
// R14, R15 scratch

// ROWS opens the loop over the rows, and inside it the one over the runs of a
// row; NEXT closes both.
#define ROWS(row, line, begin, run) \
row: \
	DECQ R12                     \
	JLT  begin                   \
	MOVQ burst_distance(R13), AX \
	MOVQ (SI)(AX*8), AX          \
	ADDQ R8, AX                  \
	MOVQ burst_last(R13), R14    \
	PREFETCHT0 (AX)(R14*1)       \
	MOVQ burst_lines(R13), R14   \
line: \
	PREFETCHT0 (AX)              \
	ADDQ burst_step(R13), AX     \
	DECQ R14                     \
	JNE  line                    \
begin: \
	MOVQ (SI), AX                \
	ADDQ R8, AX                  \
	MOVQ DX, DI                  \
	MOVQ R10, BX                 \
run:

#define NEXT(row, run) \
	ADDQ R11, AX               \
	ADDQ R9, DI                \
	DECQ BX                    \
	JNE  run                   \
	ADDQ $8, SI                \
	ADDQ burst_width(R13), DX  \
	DECQ CX                    \
	JNE  row                   \
	VZEROUPPER                 \
	RET

// FOUR copies four runs of a power of two at a time, through the given
// registers, and leaves at least one.
#define FOUR(loop, MOV, size, a, b, c, d) \
loop: \
	CMPQ CX, $4              \
	JLE  classes             \
	MOVQ (SI), AX            \
	MOVQ 8(SI), BX           \
	MOVQ 16(SI), R14         \
	MOVQ 24(SI), R15         \
	MOV  (AX)(R8*1), a       \
	MOV  (BX)(R8*1), b       \
	MOV  (R14)(R8*1), c      \
	MOV  (R15)(R8*1), d      \
	MOV  a, (DX)             \
	MOV  b, size(DX)         \
	MOV  c, (2*size)(DX)     \
	MOV  d, (3*size)(DX)     \
	ADDQ $32, SI             \
	ADDQ $(4*size), DX       \
	SUBQ $4, CX              \
	SUBQ $4, R12             \
	JMP  loop

// func copyShort(b *burst)
//
// One loop per class of lengths: runs that are no power of two are two or more
// wide copies that overlap.
TEXT ·copyShort(SB), NOSPLIT, $0-8
	MOVQ b+0(FP), R13
	MOVQ burst_dst(R13), DX
	MOVQ burst_rows(R13), SI
	MOVQ burst_n(R13), CX
	MOVQ burst_src(R13), R8
	MOVQ burst_run(R13), R9
	MOVQ burst_count(R13), R10
	MOVQ burst_stride(R13), R11
	MOVQ burst_ahead(R13), R12

	// Small elements in a block of their own need no prefetch: the loads of
	// many rows fit in the processor's window.
	CMPQ R9, burst_width(R13)
	JNE  classes
	CMPQ R9, $1
	JEQ  four1
	CMPQ R9, $2
	JEQ  four2
	CMPQ R9, $4
	JEQ  four4
	CMPQ R9, $8
	JEQ  four8
	CMPQ R9, $16
	JEQ  four16
	CMPQ R9, $32
	JNE  classes

four32:
	CMPQ CX, $4
	JLE  classes
	MOVQ (SI), AX
	MOVQ 8(SI), BX
	MOVQ 16(SI), R14
	MOVQ 24(SI), R15
	VMOVDQU (AX)(R8*1), X0
	VMOVDQU 16(AX)(R8*1), X1
	VMOVDQU (BX)(R8*1), X2
	VMOVDQU 16(BX)(R8*1), X3
	VMOVDQU (R14)(R8*1), X4
	VMOVDQU 16(R14)(R8*1), X5
	VMOVDQU (R15)(R8*1), X6
	VMOVDQU 16(R15)(R8*1), X7
	VMOVDQU X0, (DX)
	VMOVDQU X1, 16(DX)
	VMOVDQU X2, 32(DX)
	VMOVDQU X3, 48(DX)
	VMOVDQU X4, 64(DX)
	VMOVDQU X5, 80(DX)
	VMOVDQU X6, 96(DX)
	VMOVDQU X7, 112(DX)
	ADDQ $32, SI
	ADDQ $128, DX
	SUBQ $4, CX
	SUBQ $4, R12
	JMP  four32
	FOUR(four16, VMOVDQU, 16, X0, X1, X2, X3)
	FOUR(four8, MOVQ, 8, AX, BX, R14, R15)
	FOUR(four4, MOVL, 4, AX, BX, R14, R15)
	FOUR(four2, MOVW, 2, AX, BX, R14, R15)
	FOUR(four1, MOVB, 1, AX, BX, R14, R15)

classes:
	CMPQ R9, $16
	JGT  over16
	CMPQ R9, $8
	JGT  row9
	JEQ  row8
	CMPQ R9, $4
	JGT  row5
	JEQ  row4
	CMPQ R9, $2
	JGT  row3
	JEQ  row2

	ROWS(row1, line1, begin1, run1)
	MOVB (AX), R14
	MOVB R14, (DI)
	NEXT(row1, run1)

	ROWS(row2, line2, begin2, run2)
	MOVW (AX), R14
	MOVW R14, (DI)
	NEXT(row2, run2)

	ROWS(row3, line3, begin3, run3)
	MOVW (AX), R14
	MOVB 2(AX), R15
	MOVW R14, (DI)
	MOVB R15, 2(DI)
	NEXT(row3, run3)

	ROWS(row4, line4, begin4, run4)
	MOVL (AX), R14
	MOVL R14, (DI)
	NEXT(row4, run4)

	// 5 to 7
	ROWS(row5, line5, begin5, run5)
	MOVL (AX), R14
	MOVL -4(AX)(R9*1), R15
	MOVL R14, (DI)
	MOVL R15, -4(DI)(R9*1)
	NEXT(row5, run5)

	ROWS(row8, line8, begin8, run8)
	MOVQ (AX), R14
	MOVQ R14, (DI)
	NEXT(row8, run8)

	// 9 to 16
	ROWS(row9, line9, begin9, run9)
	MOVQ (AX), R14
	MOVQ -8(AX)(R9*1), R15
	MOVQ R14, (DI)
	MOVQ R15, -8(DI)(R9*1)
	NEXT(row9, run9)

over16:
	CMPQ R9, $64
	JGT  over64
	CMPQ R9, $32
	JGT  row33

	// 17 to 32
	ROWS(row17, line17, begin17, run17)
	VMOVDQU (AX), X0
	VMOVDQU -16(AX)(R9*1), X1
	VMOVDQU X0, (DI)
	VMOVDQU X1, -16(DI)(R9*1)
	NEXT(row17, run17)

	// 33 to 64
	ROWS(row33, line33, begin33, run33)
	VMOVDQU (AX), Y0
	VMOVDQU -32(AX)(R9*1), Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, -32(DI)(R9*1)
	NEXT(row33, run33)

over64:
	CMPQ R9, $128
	JGT  row129

	// 65 to 128
	ROWS(row65, line65, begin65, run65)
	VMOVDQU (AX), Y0
	VMOVDQU 32(AX), Y1
	VMOVDQU -64(AX)(R9*1), Y2
	VMOVDQU -32(AX)(R9*1), Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, -64(DI)(R9*1)
	VMOVDQU Y3, -32(DI)(R9*1)
	NEXT(row65, run65)

	// 129 and more: steps of 128 from the front, then the last 128.
	ROWS(row129, line129, begin129, run129)
	LEAQ -128(R9), R15
	XORQ R14, R14

step129:
	VMOVDQU (AX)(R14*1), Y0
	VMOVDQU 32(AX)(R14*1), Y1
	VMOVDQU 64(AX)(R14*1), Y2
	VMOVDQU 96(AX)(R14*1), Y3
	VMOVDQU Y0, (DI)(R14*1)
	VMOVDQU Y1, 32(DI)(R14*1)
	VMOVDQU Y2, 64(DI)(R14*1)
	VMOVDQU Y3, 96(DI)(R14*1)
	ADDQ $128, R14
	CMPQ R14, R15
	JLT  step129
	VMOVDQU (AX)(R15*1), Y0
	VMOVDQU 32(AX)(R15*1), Y1
	VMOVDQU 64(AX)(R15*1), Y2
	VMOVDQU 96(AX)(R15*1), Y3
	VMOVDQU Y0, (DI)(R15*1)
	VMOVDQU Y1, 32(DI)(R15*1)
	VMOVDQU Y2, 64(DI)(R15*1)
	VMOVDQU Y3, 96(DI)(R15*1)
	NEXT(row129, run129)
