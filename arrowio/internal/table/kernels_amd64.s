#include "textflag.h"
#include "go_asm.h"

// The copies find the entry e of a record r, then copy the element at
// origin[e] + r*size.
//
// SI records    CX records left   DI destination   R8 origins
// AX, BX, R12, X0 or Y0 scratch

// ARGUMENTS loads what all copies share. The index is at R9.
#define ARGUMENTS \
	MOVQ dst+0(FP), DI     \
	MOVQ records+8(FP), SI \
	MOVQ n+16(FP), CX      \
	MOVQ origin+24(FP), R8 \
	MOVQ x+32(FP), R9

// ELEMENTS copies four elements per round, then the rest.
#define ELEMENTS(AT, MOV, size, four, one, next, done) \
	SUBQ $4, CX        \
	JLT  one           \
four: \
	AT(0, MOV, size)   \
	AT(1, MOV, size)   \
	AT(2, MOV, size)   \
	AT(3, MOV, size)   \
	ADDQ $32, SI       \
	ADDQ $(4*size), DI \
	SUBQ $4, CX        \
	JGE  four          \
one: \
	ADDQ $4, CX        \
	JEQ  done          \
next: \
	AT(0, MOV, size)   \
	ADDQ $8, SI        \
	ADDQ $size, DI     \
	DECQ CX            \
	JNE  next          \
done: \
	VZEROUPPER         \
	RET

// SINGLE: the origin is R8.
#define SINGLE(i, MOV, size) \
	MOVQ (8*i)(SI), AX       \
	MOV  (R8)(AX*size), AX   \
	MOV  AX, (size*i)(DI)

// DIVIDED: the inverse is DX.
#define DIVIDED(i, MOV, size) \
	MOVQ  (8*i)(SI), AX       \
	MULXQ AX, R12, BX         \
	MOVQ  (R8)(BX*8), BX      \
	MOV   (BX)(AX*size), AX   \
	MOV   AX, (size*i)(DI)

// The same for elements of 16 and 32 bytes, through the register V.
#define WIDE(i, origin, V, size) \
	IMUL3Q  $size, AX, AX       \
	VMOVDQU (origin)(AX*1), V   \
	VMOVDQU V, (size*i)(DI)

#define SINGLEWIDE(i, V, size) \
	MOVQ (8*i)(SI), AX         \
	WIDE(i, R8, V, size)

#define DIVIDEDWIDE(i, V, size) \
	MOVQ  (8*i)(SI), AX         \
	MULXQ AX, R12, BX           \
	MOVQ  (R8)(BX*8), BX        \
	WIDE(i, BX, V, size)

// func single4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·single4(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ (R8), R8
	ELEMENTS(SINGLE, MOVL, 4, four, one, next, done)

// func single8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·single8(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ (R8), R8
	ELEMENTS(SINGLE, MOVQ, 8, four, one, next, done)

// func single16(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·single16(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ (R8), R8
	ELEMENTS(SINGLEWIDE, X0, 16, four, one, next, done)

// func single32(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·single32(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ (R8), R8
	ELEMENTS(SINGLEWIDE, Y0, 32, four, one, next, done)

// func divided4(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·divided4(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ Index_inverse(R9), DX
	ELEMENTS(DIVIDED, MOVL, 4, four, one, next, done)

// func divided8(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·divided8(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ Index_inverse(R9), DX
	ELEMENTS(DIVIDED, MOVQ, 8, four, one, next, done)

// func divided16(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·divided16(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ Index_inverse(R9), DX
	ELEMENTS(DIVIDEDWIDE, X0, 16, four, one, next, done)

// func divided32(dst unsafe.Pointer, records *int64, n int, origin *uintptr, x *Index)
TEXT ·divided32(SB), NOSPLIT, $0-40
	ARGUMENTS
	MOVQ Index_inverse(R9), DX
	ELEMENTS(DIVIDEDWIDE, Y0, 32, four, one, next, done)
