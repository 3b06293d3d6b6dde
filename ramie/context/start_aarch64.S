// The base of every fresh stack on aarch64. Reached by a jump, with x0 and x1 as switch_context left them (the
// transferred words) and x29 holding the entry function, which fresh_context put there.
// The return address of this frame is declared undefined, link register and frame pointer are zero: unwinders, gdb
// and frame-pointer walkers all stop here.
#if defined(__aarch64__)
        .text
        .globl  ramie_context_start
        .hidden ramie_context_start
        .type   ramie_context_start, %function
        .p2align 4
ramie_context_start:
        .cfi_startproc
        .cfi_undefined x30
        hint    #36                     // bti j
        mov     x16, x29
        mov     x29, xzr
        mov     x30, xzr
        blr     x16
        brk     #1
        .cfi_endproc
        .size   ramie_context_start, . - ramie_context_start

        // Built for branch target identification.
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000000, 4, 1, 0
#endif

        // Outside the condition: an object without this note would ask for executable stacks.
        .section .note.GNU-stack, "", %progbits
