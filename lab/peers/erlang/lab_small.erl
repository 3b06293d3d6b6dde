-module(lab_small).
-export([yield/1, spawn_join/1, spawn_batches/1, timers_cancel/1, timers_fire/1, memory/1, idle_actors/1, ticker/1]).

yield(Options) ->
    Processes = lab_peer:number("fibers", Options, 2),
    Count = lab_peer:number("count", Options, 2000000),
    {Seconds, _} = lab_peer:elapsed(fun() -> start_and_join(Processes, fun() -> yields(Count) end) end),
    {Seconds, Processes * Count, true, #{}}.

yields(0) -> ok;
yields(Left) -> erlang:yield(), yields(Left - 1).

start_and_join(Number, Fun) ->
    Monitors = [element(2, spawn_monitor(Fun)) || _ <- lists:seq(1, Number)],
    [receive {'DOWN', Monitor, process, _, normal} -> ok end || Monitor <- Monitors].

spawn_join(Options) ->
    Count = lab_peer:number("count", Options, 1000000),
    Self = self(),
    {Seconds, Sum} = lab_peer:elapsed(fun() -> one_by_one(Self, Count, 0) end),
    {Seconds, Count, Sum =:= Count * (Count + 1) div 2, #{}}.

one_by_one(_, 0, Sum) -> Sum;
one_by_one(Self, Left, Sum) ->
    spawn(fun() -> Self ! Left end),
    receive N -> one_by_one(Self, Left - 1, Sum + N) end.

spawn_batches(Options) ->
    Count = lab_peer:number("count", Options, 1000000),
    Self = self(),
    {Seconds, Sum} = lab_peer:elapsed(fun() -> batches(Self, Count, 0) end),
    {Seconds, Count, Sum =:= Count * (Count + 1) div 2, #{}}.

batches(_, 0, Sum) -> Sum;
batches(Self, Left, Sum) ->
    Size = min(100, Left),
    start(Self, Left, Size),
    batches(Self, Left - Size, Sum + add_up(Size, 0)).

start(_, _, 0) -> ok;
start(Self, Number, Size) -> spawn(fun() -> Self ! Number end), start(Self, Number - 1, Size - 1).

add_up(0, Sum) -> Sum;
add_up(Left, Sum) -> receive N -> add_up(Left - 1, Sum + N) end.

timers_cancel(Options) ->
    Count = lab_peer:number("count", Options, 1000000),
    {Start, Timers} = lab_peer:elapsed(fun() ->
        [erlang:start_timer(3600000 + I rem 1000 * 1000, self(), x) || I <- lists:seq(1, Count)]
    end),
    {Cancel, Cancelled} = lab_peer:elapsed(fun() ->
        lists:foldl(fun(T, N) -> case erlang:cancel_timer(T) of false -> N; _ -> N + 1 end end, 0, Timers)
    end),
    {Start + Cancel, Count, Cancelled =:= Count,
     #{start_ns_per_timer => Start * 1.0e9 / Count, cancel_ns_per_timer => Cancel * 1.0e9 / Count}}.

%% Erlang's timers count milliseconds: all are due within two.
timers_fire(Options) ->
    process_flag(message_queue_data, off_heap),
    Count = lab_peer:number("count", Options, 1000000),
    {Seconds, Sum} = lab_peer:elapsed(fun() ->
        arm(Count, self()),
        add_up(Count, 0)
    end),
    {Seconds, Count, Sum =:= Count, #{}}.

arm(0, _) -> ok;
arm(Left, Self) -> erlang:send_after(Left rem 2, Self, 1), arm(Left - 1, Self).

%% Processes that wait for a message, all at once.
memory(Options) ->
    process_flag(message_queue_data, off_heap),
    Count = lab_peer:number("count", Options, 1000000),
    Before = resident_bytes(),
    Self = self(),
    {Seconds, Parked} = lab_peer:elapsed(fun() ->
        [spawn(fun() -> receive go -> Self ! 1 end end) || _ <- lists:seq(1, Count)]
    end),
    Grown = resident_bytes() - Before,
    {Ending, Sum} = lab_peer:elapsed(fun() -> [Pid ! go || Pid <- Parked], add_up(Count, 0) end),
    {Seconds, Count, Sum =:= Count,
     #{resident_bytes_per_fiber => Grown / Count, wake_and_end_ns_per_fiber => Ending * 1.0e9 / Count}}.

%% The same processes as actors: an integer is their state.
idle_actors(Options) ->
    {Seconds, Count, Ok, #{resident_bytes_per_fiber := Bytes}} = memory(Options),
    {Seconds, Count, Ok, #{resident_bytes_per_actor => Bytes}}.

resident_bytes() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    [_, Rest] = binary:split(Text, <<"VmRSS:">>),
    {Kib, _} = string:to_integer(string:trim(Rest, leading)),
    Kib * 1024.

%% A ticker beside processes that never wait.
ticker(Options) ->
    Hogs = [spawn_link(fun() -> hog(0) end) || _ <- lists:seq(1, lab_peer:number("hogs", Options, 8))],
    Ticks = lab_peer:number("ticks", Options, 1000),
    Period = max(1, lab_peer:number("period-us", Options, 1000) div 1000),
    {Seconds, Late} = lab_peer:elapsed(fun() -> ticks(Ticks, Period, now_ms(), []) end),
    [begin unlink(Hog), exit(Hog, kill) end || Hog <- Hogs],
    Sorted = lists:sort(Late),
    {Seconds, Ticks, true,
     #{lateness_p50_us => lists:nth(Ticks div 2 + 1, Sorted),
       lateness_p99_us => lists:nth(Ticks * 99 div 100 + 1, Sorted),
       lateness_max_us => lists:last(Sorted)}}.

hog(N) -> hog(N + 1).

now_ms() -> erlang:monotonic_time(millisecond).

%% Every due tick is late by so many microseconds, also those that came due while the process waited for its turn.
ticks(Left, _, _, Late) when Left =< 0 -> Late;
ticks(Left, Period, Last, Late) ->
    Due = Last + Period,
    erlang:start_timer(Due, self(), tick, [{abs, true}]),
    receive {timeout, _, tick} -> ok end,
    Now = erlang:monotonic_time(microsecond),
    More = lists:seq(Due, min(Now div 1000, Due + (Left - 1) * Period), Period),
    By = [float(Now - Each * 1000) || Each <- case More of [] -> [Due]; _ -> More end],
    ticks(Left - length(By), Period, Due + (length(By) - 1) * Period, By ++ Late).
