/* x86-TSO for the models: what a thread stores lies in its buffer until it is flushed, at any time and in order, or by
 * a fence. HEAVY_FENCE is membarrier(2): it ends when all buffers are empty, as a full fence in each thread.
 * Define THREADS, VARS and BUFFER (how many stores a buffer holds) before this. */
byte mem[VARS];
chan buffer[THREADS] = [BUFFER] of { byte, byte };

#define STORE(me, var, value) buffer[me]!var,value
#define FULL_FENCE(me) (empty(buffer[me]))
#ifdef NO_HEAVY_FENCE
#define HEAVY_FENCE(me) skip
#else
#define HEAVY_FENCE(me) all_flushed()
#endif

inline all_flushed() {
  d_step {
    byte thread = 0;
    byte var, value;
    do
    :: thread < THREADS && nempty(buffer[thread]) -> buffer[thread]?var,value; mem[var] = value
    :: thread < THREADS && empty(buffer[thread]) -> thread++
    :: thread == THREADS -> break
    od;
    thread = 0; var = 0; value = 0
  }
}

/* One for each thread. */
active [THREADS] proctype flusher() {
  byte var, value;
end:
  do
  :: d_step { nempty(buffer[_pid]) -> buffer[_pid]?var,value; mem[var] = value; var = 0; value = 0 }
  od
}
