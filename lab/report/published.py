"""Figures that others have published about these experiments: old ones from other machines, shown beside ours as claims."""

PUBLISHED = {
    "1 skynet": {
        "source": "Boost.Fiber's performance page: 4 cores, 8 threads; time per lightweight thread",
        "columns": ("system", "published"),
        "rows": (
            ("Haskell", "0.32 us"),
            ("Erlang", "0.64 to 1.21 us"),
            ("Go 1.6", "0.70 to 1.64 us"),
            ("Boost.Fiber, one thread, round robin", "0.91 to 1.28 us"),
            ("Boost.Fiber, shared_work", "0.90 to 1.11 us; with tcmalloc 0.62 to 0.80"),
            ("Boost.Fiber, work_stealing", "0.35 to 0.66 us; with tcmalloc 0.13 to 0.26"),
        ),
    },
    "2 sum": {
        "source": "libcsp's performance page: 20,000,000 processes a round, a machine with 8 GB. libcsp has no package, so it is here by its "
                  "own figures only",
        "columns": ("system", "1 core", "8 cores", "memory"),
        "rows": (
            ("libcsp", "3.05 s (152 ns a process)", "0.73 s", "0.2 to 2.3 %"),
            ("Go 1.14", "31.1 s", "8.0 s", "27.8 to 32 %"),
        ),
    },
    "3 mixed case": {
        "source": "libcppa's mixed case against Erlang and Scala, in words",
        "columns": ("system", "published"),
        "rows": (
            ("Erlang", "its preemptive scheduler used the cores best"),
            ("libcppa (now CAF)", "its own scheduler stopped scaling at six cores; 10 to 20 % went into stacks and switches"),
            ("threads", "worst"),
        ),
    },
    "4 goroutine overhead": {
        "source": "the goroutine test of 2011, Go r60, one thread",
        "columns": ("square roots each", "published share of the direct speed"),
        "rows": (("1", "25 %"), ("10", "80 %"), ("100", "98 %"), ("1000 and more", "99 %")),
    },
    "5 cache affinity": {
        "source": "actors on executors, 2014; milliseconds for 24 actors on 8 threads, 20 accesses a message",
        "columns": ("bytes of state", "work stealing", "shared pool", "dedicated"),
        "rows": (
            ("64", "505", "2001", "557"),
            ("4000", "625", "2096", "600"),
            ("320,000", "667", "3070", "738"),
            ("3,200,000", "1341", "3997", "1428"),
        ),
    },
    "Memory": {
        "source": "the goroutine test of 2011, Go r60",
        "columns": ("system", "published"),
        "rows": (("Go r60", "4 to 4.5 KB a goroutine"),),
    },
}

UNFAIR = (
    "Programs in virtual machines (Erlang, Pekko, the JDK) run helper threads of their own, for collection and compilation. All are bound to as "
    "many cores as there are workers, so these take time from the workers.",
    "A garbage collector may put its work off until after the clock has stopped; stacks that ramie keeps pooled are likewise "
    "given back later.",
    "ramie's fibers come from a pool that is warm after the first run; peers that allocate anew each time pay for page faults in every run. "
    "The cold case is in the chapter on memory.",
    "Memory is the peak of the whole process, run-time system included: some 5 MiB for ramie, tens for a virtual machine.",
    "rayon, oneTBB and OpenMP run tasks that cannot wait for each other's messages; they stand beside ramie's fork_join only, "
    "which can.",
    "tokio's tasks are stackless: smaller than a fiber, but only async functions can wait in them.",
    "Debian's CAF is version 0.17; newer ones are said to be up to twice as fast.",
    "A few runs on a machine with two cores say little about machines with many.",
)
