-module(lab_messages).
-export([pingpong/1, overhead/1]).

pingpong(Options) ->
    Rounds = lab_peer:number("messages", Options, 2000000) div 2,
    Self = self(),
    {Seconds, Last} = lab_peer:elapsed(fun() ->
        Other = spawn_link(fun() -> answer(Self) end),
        ask(Other, Rounds, 0)
    end),
    {Seconds, 2 * Rounds, Last =:= Rounds, #{}}.

answer(Parent) -> receive N -> Parent ! N + 1, answer(Parent) end.

ask(Other, 0, Last) ->
    unlink(Other),
    exit(Other, kill),
    Last;
ask(Other, Left, Last) ->
    Other ! Last,
    receive N -> ask(Other, Left - 1, N) end.

%% Experiment 4: the function called in a loop, and as a process each time.
overhead(Options) ->
    %% So many messages wait at once that no collection should have to look at them.
    process_flag(message_queue_data, off_heap),
    N = lab_peer:number("n", Options, 1),
    X = lab_peer:number("x", Options, 100000),
    Self = self(),
    {Direct, Right} = lab_peer:elapsed(fun() -> call(X, N, Self), collect(X, 0) end),
    erlang:garbage_collect(),
    {Seconds, RightToo} = lab_peer:elapsed(fun() -> start(X, N, Self), collect(X, 0) end),
    {Seconds, X, Right + RightToo =:= 2 * X, #{share_of_direct => Direct / Seconds}}.

call(0, _, _) -> ok;
call(Left, N, Parent) -> roots(N, 0.0, Parent), call(Left - 1, N, Parent).

start(0, _, _) -> ok;
start(Left, N, Parent) -> spawn(fun() -> roots(N, 0.0, Parent) end), start(Left - 1, N, Parent).

roots(0, Sum, Parent) -> Parent ! (Sum > 0);
roots(N, Sum, Parent) -> roots(N - 1, Sum + math:sqrt(13.0), Parent).

collect(0, Right) -> Right;
collect(Left, Right) ->
    receive
        true -> collect(Left - 1, Right + 1);
        false -> collect(Left - 1, Right)
    end.
