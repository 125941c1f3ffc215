#include "go_asm.h"
#include "textflag.h"

// Long rows are copied one after the other, in steps of 128 bytes and a last step
// that overlaps. Each step prefetches two lines that are copied some steps later.
//
// SI address of the row's address   CX rows left      DI destination of the row
// AX source of the row              R14 offset in it  R15 offset of the last step
// BX next address to prefetch       R12 steps until BX becomes R11
// R8 source offset    R9 run        R13 the burst     R10 scratch

// LONG begins a row. Prefetches are some rows and some steps ahead, so they begin
// within one row and continue with the next.
#define LONG(row) \
row: \
	MOVQ burst_end(R13), R10    \
	MOVQ burst_near(R13), BX    \
	LEAQ (SI)(BX*8), BX         \
	LEAQ 8(BX), R11             \
	CMPQ BX, R10                \
	CMOVQGT R10, BX             \
	CMPQ R11, R10               \
	CMOVQGT R10, R11            \
	MOVQ (BX), BX               \
	MOVQ (R11), R11             \
	ADDQ R8, BX                 \
	PREFETCHT0 -1(BX)(R9*1)     \
	ADDQ burst_offset(R13), BX  \
	ADDQ R8, R11                \
	MOVQ burst_left(R13), R12   \
	MOVQ (SI), AX               \
	ADDQ R8, AX

#define PREFETCH \
	PREFETCHT0 (BX)    \
	PREFETCHT0 64(BX)  \
	ADDQ $128, BX      \
	DECQ R12           \
	CMOVQEQ R11, BX

#define STEP(STORE, at) \
	VMOVDQU (AX)(at*1), Y0   \
	VMOVDQU 32(AX)(at*1), Y1 \
	VMOVDQU 64(AX)(at*1), Y2 \
	VMOVDQU 96(AX)(at*1), Y3 \
	STORE Y0, (DI)(at*1)     \
	STORE Y1, 32(DI)(at*1)   \
	STORE Y2, 64(DI)(at*1)   \
	STORE Y3, 96(DI)(at*1)

#define NEXTLONG(row) \
	ADDQ $8, SI                \
	ADDQ burst_width(R13), DI  \
	DECQ CX                    \
	JNE  row

// func copyLong(b *burst, streaming bool)
TEXT ·copyLong(SB), NOSPLIT, $0-9
	MOVQ b+0(FP), R13
	MOVQ burst_dst(R13), DI
	MOVQ burst_rows(R13), SI
	MOVQ burst_n(R13), CX
	MOVQ burst_src(R13), R8
	MOVQ burst_run(R13), R9
	LEAQ -128(R9), R15
	CMPB streaming+8(FP), $0
	JNE  streamRow

	LONG(storeRow)
	XORQ R14, R14

store:
	PREFETCH
	STEP(VMOVDQU, R14)
	ADDQ $128, R14
	CMPQ R14, R15
	JLT  store
	PREFETCH
	STEP(VMOVDQU, R15)
	NEXTLONG(storeRow)
	VZEROUPPER
	RET

	// Streaming stores need whole cache lines. So the row first copies 64 bytes and
	// continues at the next line. The rest at its end is copied 32 bytes at a time;
	// the last copy overlaps.
	LONG(streamRow)
	MOVQ DI, R14
	NEGQ R14
	ANDQ $63, R14
	JEQ  stream
	VMOVDQU (AX), Y0
	VMOVDQU 32(AX), Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)

stream:
	PREFETCH
	STEP(VMOVNTDQ, R14)
	ADDQ $128, R14
	CMPQ R14, R15
	JLE  stream
	PREFETCH

tail:
	LEAQ 32(R14), R10
	CMPQ R10, R9
	JGT  rest
	VMOVDQU (AX)(R14*1), Y0
	VMOVDQU Y0, (DI)(R14*1)
	MOVQ R10, R14
	JMP  tail

rest:
	CMPQ R14, R9
	JEQ  streamed
	VMOVDQU -32(AX)(R9*1), Y0
	VMOVDQU Y0, -32(DI)(R9*1)

streamed:
	NEXTLONG(streamRow)
	SFENCE
	VZEROUPPER
	RET

// Short rows.
//
// SI address of the row's address   CX rows left      DX destination of the row
// AX source of the run              DI destination    BX runs left
// R8 source offset    R9 run        R10 count         R11 stride
// R12 rows left to prefetch for     R13 the burst
// R14, R15 scratch

// ROWS begins the loop over the rows, and inside it the loop over the runs of a
// row. NEXT ends both.
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

// FOUR copies four runs at a time through the given registers, and leaves at least
// one. The length of a run is a power of two.
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
// There is a loop for each class of lengths. A run whose length is not a power of
// two is copied by two or more wide copies that overlap.
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
