/* ramie/task/wait_word.hpp, W1 to W6: one wait of a fiber, its worker (thread 0) and two wakers that compete. Proved: the
 * fiber goes on exactly once, and never before its context is saved. */
#define THREADS 3
#define BUFFER 2
#define VARS 2
#define WORD 0
#define MARK 1
#include "tso.pml"

/* Of the word: epoch and state in one number. */
#define RUNNING 0
#define ARMED 1
#define CLAIMED 2        /* the next epoch, running */
#define CLAIMED_EARLY 3

bool published, saved;
byte went_on;

/* Compare-and-swap drains the buffer. */
inline swap(me, from, to, done) {
  atomic {
    empty(buffer[me]) ->
    if :: mem[WORD] == from -> mem[WORD] = to; done = true :: else -> done = false fi
  }
}
inline make_ready() { atomic { assert(saved); went_on++; assert(went_on == 1) } }

proctype fiber() {
  bool done;
  byte seen;
  STORE(0, WORD, ARMED);                               /* W1 */
  FULL_FENCE(0);                                       /* a model of one wait: only then does anybody know of it */
  published = true;                                    /* W2 */
  if
  :: mem[WORD] != ARMED -> atomic { went_on++; assert(went_on == 1) }   /* W6: it sees the claim and stays */
  :: else ->
     saved = true;                                     /* W3: the switch */
     seen = mem[WORD];
     if
     :: seen == ARMED ->
        STORE(0, MARK, 1);                             /* the light fence is for the compiler */
#ifdef NO_SECOND_LOOK
        skip
#else
        seen = mem[WORD];
        if
        :: seen == CLAIMED_EARLY ->
           swap(0, CLAIMED_EARLY, CLAIMED, done);
           if :: done -> make_ready() :: else fi
        :: else
        fi
#endif
     :: seen == CLAIMED_EARLY -> make_ready()          /* it was not marked: nobody else does */
     :: else -> assert(false)                          /* claimed by a waker that saw a mark: there was none */
     fi
  fi
}

proctype waker(byte me) {
  bool done;
  byte mark;
  published;
  do
  :: mem[WORD] != ARMED -> break                       /* W4: late */
  :: else ->
     mark = mem[MARK];
     if
     :: mark == 1 ->
        swap(me, ARMED, CLAIMED, done);                /* W4 */
        if :: done -> make_ready(); break :: else fi
     :: mark == 0 -> skip                              /* W6: looks again */
     :: mark == 0 ->
        swap(me, ARMED, CLAIMED_EARLY, done);          /* W6 */
        if
        :: done ->
           HEAVY_FENCE(me);
           if
           :: mem[MARK] == 1 ->
              swap(me, CLAIMED_EARLY, CLAIMED, done);
              if :: done -> make_ready() :: else fi
           :: else
           fi;
           break
        :: else
        fi
     fi
  od
}

init {
  atomic { run fiber(); run waker(1); run waker(2) }
  (_nr_pr == THREADS + 1) -> assert(went_on == 1)
}
