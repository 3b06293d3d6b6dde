/* ramie/worker/idle_set.hpp: a publisher of WORK items (each keeps whoever takes it busy for ever) and three workers.
 * Proved: when nothing moves any more, no worker sleeps while an item waits.
 * -DNO_END_FENCE leaves out E2, as it was once. */
#define WORK 2
#define WORKERS 3
#define THREADS 4
#define BUFFER 4
#define VARS 3
#define LOCK 0
#define HINT 1
#define QUEUED 2  /* published so far: the publisher's alone, as `bottom` of a queue is */
#include "tso.pml"

byte taken;       /* by atomic steps, as thieves do */
byte searching, sleeping;
bool asleep[THREADS], token[THREADS];

inline lock(me) { atomic { mem[LOCK] == 0 && empty(buffer[me]) -> mem[LOCK] = 1 } }
inline unlock(me) { STORE(me, LOCK, 0) }
inline update_hint(me) { STORE(me, HINT, (sleeping > 0 && searching == 0 -> 1 : 0)) }

inline wake_one(me) {
  lock(me);
  if
  :: sleeping > 0 && searching == 0 ->
     d_step {
       who = 1;
       do :: who < THREADS && !asleep[who] -> who++ :: else -> break od;
       asleep[who] = false; sleeping--; searching++
     }
     update_hint(me); unlock(me);
     token[who] = true
  :: else -> unlock(me)
  fi;
  who = 0
}

proctype publisher() {
  byte n, who;
  for (n : 1 .. WORK) {
    STORE(0, QUEUED, n);                                   /* I1; I2 is light */
    if
    :: mem[HINT] == 0                                      /* I3 */
    :: else -> wake_one(0)                                 /* I4 */
    fi
  }
}

proctype worker(byte me) {
  byte who;
  bool got, searches, last;
  do
  :: true ->
     if
     :: !searches ->
        lock(me); searching++; searches = true; update_hint(me); unlock(me)
     :: else
     fi;
     atomic {                                              /* a search: takes the oldest, if it sees any */
       empty(buffer[me]) ->
       got = (mem[QUEUED] > taken); if :: got -> taken++ :: else fi
     }
     lock(me); searching--; searches = false;
     if
     :: got ->
        last = (searching == 0 && sleeping > 0);
        update_hint(me); unlock(me);                       /* E1 */
        if
        :: last ->
#ifndef NO_END_FENCE
           HEAVY_FENCE(me);                                /* E2 */
#endif
           if :: mem[QUEUED] > taken -> wake_one(me) :: else fi  /* E3 */
        :: else
        fi;
        break                                              /* busy for ever */
     :: else ->
        asleep[me] = true; sleeping++;
        update_hint(me); unlock(me);                       /* S1 */
        HEAVY_FENCE(me);                                   /* S2 */
        if
        :: mem[QUEUED] > taken ->                          /* S3 */
           lock(me);
           if
           :: asleep[me] -> asleep[me] = false; sleeping--; searching++; searches = true; update_hint(me); unlock(me)
           :: else -> unlock(me); token[me]; token[me] = false; searches = true
           fi
        :: else ->
end_asleep:
           token[me]; token[me] = false; searches = true   /* S4: woken as a searcher */
        fi
     fi
  od
}

active proctype observer() {
  timeout -> assert(sleeping == 0 || mem[QUEUED] == taken)
}

init { atomic { run publisher(); run worker(1); run worker(2); run worker(3) } }
