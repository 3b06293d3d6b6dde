/* ramie/queue/spawn_deque.hpp: an owner that pushes N tasks and pops, two thieves. Proved: each task is taken once.
 * The ring does not grow here. */
#define N 3
#define THREADS 3
#define BUFFER 3
#define VARS 2
#define BOTTOM 0
#define TOP 1
#include "tso.pml"

bool thieves;
byte taken[N];
byte own_bottom;  /* what the owner last stored: it alone writes it */

inline lock(me) { atomic { !thieves && empty(buffer[me]) -> thieves = true } }
inline unlock(me) { atomic { empty(buffer[me]) -> thieves = false } }
inline take(which) { taken[which]++; assert(taken[which] == 1) }

inline pop() {
  if
  :: own_bottom == 0 || mem[TOP] > own_bottom - 1 -> got = false    /* empty, or soon to be */
  :: else ->
     own_bottom--; STORE(0, BOTTOM, own_bottom);                     /* P1; P2 is light */
     if
     :: mem[TOP] <= own_bottom -> take(own_bottom); got = true       /* P3 */
     :: else ->
        lock(0);
        if
        :: mem[TOP] <= own_bottom -> take(own_bottom); got = true
        :: else -> own_bottom++; STORE(0, BOTTOM, own_bottom); got = false
        fi;
        unlock(0)
     fi
  fi
}

proctype owner() {
  byte pushed;
  bool got;
  do
  :: pushed < N && own_bottom < N ->
     /* Slots are reused after a pop: each number is pushed once, so a task is its number. */
     if
     :: own_bottom == pushed -> own_bottom++; pushed++; STORE(0, BOTTOM, own_bottom)
     :: else -> break
     fi
  :: pushed > 0 -> pop()
  :: pushed == N -> break
  od;
  do
  :: pop(); if :: got :: else -> break fi
  od;
  /* All thieves are through: what is left would be lost. */
  (_nr_pr == THREADS + 2) && empty(buffer[0]) && empty(buffer[1]) && empty(buffer[2]);
  do
  :: pop(); if :: got :: else -> break fi
  od;
  byte i;
  for (i : 0 .. N - 1) { assert(i >= pushed || taken[i] == 1) }
}

proctype thief(byte me) {
  byte t, n, b, i, round;
  for (round : 1 .. 2) {
    lock(me);                                                         /* T1 */
    t = mem[TOP]; b = mem[BOTTOM];
    n = (b > t -> (b - t + 1) / 2 : 0);                               /* T2 */
    if
    :: n > 0 ->
       STORE(me, TOP, t + n);                                         /* T3 */
       HEAVY_FENCE(me);                                               /* T4 */
       b = mem[BOTTOM];                                               /* T5 */
       n = (b > t -> (b - t < n -> b - t : n) : 0);
       STORE(me, TOP, t + n);
       i = 0;
       do :: i < n -> take(t + i); i++ :: else -> break od
    :: else
    fi;
    unlock(me);                                                       /* T6 */
    t = 0; n = 0; b = 0; i = 0
  }
}

init { atomic { run owner(); run thief(1); run thief(2) } }
