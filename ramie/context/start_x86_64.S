// The base of every fresh stack on x86-64. Reached by a jump, with rax and rdx as switch_context left them (the
// transferred words) and rbp holding the entry function, which fresh_context put there.
// The return address of this frame is declared undefined and the frame pointer is zero: unwinders, gdb and
// frame-pointer walkers all stop here.
#if defined(__x86_64__)
        .text
        .globl  ramie_context_start
        .hidden ramie_context_start
        .type   ramie_context_start, @function
        .p2align 4
ramie_context_start:
        .cfi_startproc
        .cfi_undefined rip
        endbr64
        movq    %rbp, %rcx
        xorl    %ebp, %ebp
        movq    %rax, %rdi
        movq    %rdx, %rsi
        call    *%rcx
        ud2
        .cfi_endproc
        .size   ramie_context_start, . - ramie_context_start

        // Built for indirect branch tracking. (No shadow stack: a switch by jump leaves returns that it has not seen.)
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0
#endif

        // Outside the condition: an object without this note would ask for executable stacks.
        .section .note.GNU-stack, "", %progbits
