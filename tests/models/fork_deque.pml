/* ramie/queue/fork_deque.hpp: an owner that forks DEPTH frames, one in the other, and joins them, youngest first, twice;
 * two thieves. Proved: each frame is run once, by the owner or by a thief. */
#define DEPTH 2
#define THREADS 3
#define BUFFER 3
#define VARS 2
#define BOTTOM 0
#define TOP 1
#include "tso.pml"

bool thieves;
byte run_by[DEPTH];  /* how often the frame in this slot was run since its fork */
bool stolen[DEPTH];

inline lock(me) { atomic { !thieves && empty(buffer[me]) -> thieves = true } }
inline unlock(me) { atomic { empty(buffer[me]) -> thieves = false } }

proctype owner() {
  byte b, round;
  for (round : 1 .. 2) {
    b = 0;
    do
    :: b < DEPTH -> run_by[b] = 0; stolen[b] = false; b++; STORE(0, BOTTOM, b)  /* F1, F2 */
    :: else -> break
    od;
    do
    :: b > 0 ->
       b--;
       STORE(0, BOTTOM, b);                              /* J1; J2 is for the compiler alone */
       if
       :: mem[TOP] <= b -> run_by[b]++                   /* J3 */
       :: else ->
          lock(0);
          if
          :: mem[TOP] <= b -> run_by[b]++; unlock(0)
          :: else ->
             /* Stolen: `top` goes back with the owner, which waits for the thief's end. */
             mem[TOP] = b; unlock(0);
             stolen[b]
          fi
       fi;
       assert(run_by[b] == 1)
    :: else -> break
    od
  }
}

proctype thief(byte me) {
  byte t, round;
  for (round : 1 .. 2) {
    lock(me);                                            /* T1 */
    t = mem[TOP];
    if
    :: t < mem[BOTTOM] ->                                /* T2 */
       STORE(me, TOP, t + 1);                            /* T3 */
       HEAVY_FENCE(me);                                  /* T4 */
       if
       :: mem[BOTTOM] > t -> run_by[t]++; assert(run_by[t] == 1); unlock(me); stolen[t] = true  /* T5 */
       :: else -> STORE(me, TOP, t); unlock(me)
       fi
    :: else -> unlock(me)
    fi                                                   /* T6 */
  }
}

init { atomic { run owner(); run thief(1); run thief(2) } }
