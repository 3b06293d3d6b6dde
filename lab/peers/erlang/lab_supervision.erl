%% A tree of supervisors whose children crash. Children are gen_servers; whoever starts is found in a table, as by its id.
-module(lab_supervision).
-export([tree/1, restart/1, init/1, start_supervisor/4, start_child/3, handle_call/3, handle_cast/2]).

tree(Options) ->
    in_tree(Options, lab_peer:number("supervisors", Options, 100), lab_peer:number("children", Options, 10000)).

restart(Options) -> in_tree(Options, 1, 64).

in_tree(Options, Supervisors, Children) ->
    %% What is compared is the restart, not what is written about it.
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    process_flag(message_queue_data, off_heap),
    Count = lab_peer:number("count", Options, 200000),
    Rate = lab_peer:number("rate", Options, 0),
    Table = ets:new(children, [public, set, {read_concurrency, true}]),
    {ok, Top} = supervisor:start_link(?MODULE, {top, Supervisors, Children, Table, self()}),
    await(Children),
    {Before, _} = statistics(runtime),
    {Seconds, _} = lab_peer:elapsed(fun() -> crash_at(Table, Children, Count, Rate) end),
    {After, _} = statistics(runtime),
    Answering = length([1 || N <- lists:seq(0, Children - 1), gen_server:call(child(Table, N), touch) =:= 1]),
    unlink(Top),
    exit(Top, shutdown),
    {Seconds, Count, Answering =:= Children, #{processor_ns_per_crash => (After - Before) * 1.0e6 / Count}}.

child(Table, N) -> ets:lookup_element(Table, N, 2).

await(0) -> ok;
await(Left) -> receive started -> await(Left - 1) end.

%% At the rate, a hundredth of a second's crashes at a time; without one, 64 at a time, as fast as may be.
crash_at(Table, Children, Count, Rate) ->
    Most = min(Children, if Rate =:= 0 -> 64; true -> max(1, Rate div 100) end),
    crash_at(Table, Children, Count, Rate, Most, 0, erlang:monotonic_time(millisecond)).

crash_at(_, _, Left, _, _, _, _) when Left =< 0 -> ok;
crash_at(Table, Children, Left, Rate, Most, Last, Due) ->
    Some = min(Most, Left),
    Next = crash_some(Table, Children, Some, Last),
    await(Some),
    Rate =:= 0 orelse sleep_until(Due + 10),
    crash_at(Table, Children, Left - Some, Rate, Most, Next, Due + 10).

sleep_until(Due) ->
    erlang:start_timer(Due, self(), tick, [{abs, true}]),
    receive {timeout, _, tick} -> ok end.

%% Of different supervisors, and each crashes once: what is sent to a process that has ended vanishes.
crash_some(_, _, 0, Last) -> Last;
crash_some(Table, Children, Left, Last) ->
    Next = (Last + 7919) rem Children,
    gen_server:cast(child(Table, Next), crash),
    crash_some(Table, Children, Left - 1, Next).

start_supervisor(From, To, Table, Driver) -> supervisor:start_link(?MODULE, {below, From, To, Table, Driver}).
start_child(N, Table, Driver) -> gen_server:start_link(?MODULE, {child, N, Table, Driver}, []).

flags() -> #{strategy => one_for_one, intensity => 1000000000, period => 1}.

init({top, Supervisors, Children, Table, Driver}) ->
    {ok, {flags(), [#{id => I, type => supervisor, shutdown => infinity,
                      start => {?MODULE, start_supervisor,
                                [Children * I div Supervisors, Children * (I + 1) div Supervisors, Table, Driver]}}
                    || I <- lists:seq(0, Supervisors - 1)]}};
init({below, From, To, Table, Driver}) ->
    {ok, {flags(), [#{id => N, start => {?MODULE, start_child, [N, Table, Driver]}} || N <- lists:seq(From, To - 1)]}};
init({child, N, Table, Driver}) ->
    ets:insert(Table, {N, self()}),
    Driver ! started,
    {ok, 0}.

handle_call(touch, _, Touched) -> {reply, Touched + 1, Touched + 1}.
handle_cast(crash, _) -> error(asked_to_crash).
