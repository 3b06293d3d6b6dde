/* ramie/queue/biased_lock.hpp: an owner and two thieves, each in its section ROUNDS times. The names of the steps are
 * those of the code. Proved: one at a time is inside; nobody waits for ever. */
#define THREADS 3
#define BUFFER 2
#define VARS 2
#define INSIDE 0
#define REVOKED 1
#define ROUNDS 2
#include "tso.pml"

bool others;      /* the spin lock: taken by an atomic exchange, which drains the taker's buffer */
byte in_section;

inline take_others(me) { atomic { !others && empty(buffer[me]) -> others = true } }
inline give_others(me) { atomic { empty(buffer[me]) -> others = false } }  /* its release store comes after all others */
inline section() { in_section++; assert(in_section == 1); in_section-- }

proctype owner() {
  byte round;
  for (round : 1 .. ROUNDS) {
    STORE(0, INSIDE, 1);                    /* O1; O2 is for the compiler alone */
    if
    :: mem[REVOKED] == 0 ->                 /* O3 */
       section();                           /* O4 */
       STORE(0, INSIDE, 0)                  /* O5 */
    :: mem[REVOKED] != 0 ->
       STORE(0, INSIDE, 0);
       take_others(0); section(); give_others(0)  /* O6 */
    fi
  }
}

proctype thief(byte me) {
  byte round;
  for (round : 1 .. ROUNDS) {
    take_others(me);                        /* T1 */
    STORE(me, REVOKED, 1);                  /* T2 */
    HEAVY_FENCE(me);                        /* T3 */
    if
    :: mem[INSIDE] == 0 -> section()        /* T4, T5 */
    :: true                                 /* T4: gives up */
    fi;
    STORE(me, REVOKED, 0);                  /* T6 */
    give_others(me)
  }
}

init { atomic { run owner(); run thief(1); run thief(2) } }
