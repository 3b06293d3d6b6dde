%% Experiment 8: processes of two nodes that are connected by Erlang's own distribution. start.sh starts the far one.
-module(lab_across).
-export([far/0, tell/1, ask/1, fan_out/1]).

%% The far node: ends with the near one.
far() ->
    ok = net_kernel:monitor_nodes(true),
    register(far, spawn(fun() -> noting(0) end)),
    receive {nodedown, _} -> halt(0) end.

noting(Noted) ->
    receive
        {note, _} -> noting(Noted + 1);
        {how_many, From} -> From ! {noted, Noted}, noting(Noted);
        {number, From, N} -> From ! {number, N}, noting(Noted);
        {os_pid, From} -> From ! {os_pid, os:getpid()}, noting(Noted);
        {members, From, Count} ->
            From ! {members, [spawn(fun() -> noting(0) end) || _ <- lists:seq(1, Count)]},
            noting(Noted)
    end.

tell(Options) ->
    Count = lab_peer:number("count", Options, 500000),
    Text = text(Options),
    Far = {far, far_node()},
    Before = noted(Far),
    Processors = processors(Far),
    {Seconds, Now} = lab_peer:elapsed(fun() -> send(Count, Far, Text), noted(Far) end),
    result(Seconds, Count, Before + Count - Now, processors(Far) - Processors, #{}).

send(0, _, _) -> ok;
send(Left, Far, Text) -> Far ! {note, Text}, send(Left - 1, Far, Text).

ask(Options) ->
    Count = lab_peer:number("count", Options, 2000),
    Far = {far, far_node()},
    _ = noted(Far),
    Processors = processors(Far),
    {Seconds, Times} = lab_peer:elapsed(fun() -> [request(Far, N) || N <- lists:seq(1, Count)] end),
    Sorted = lists:sort([erlang:convert_time_unit(T, native, nanosecond) / 1000 || T <- Times]),
    result(Seconds, Count, 0, processors(Far) - Processors,
           #{p50_us => lists:nth(Count div 2 + 1, Sorted), p99_us => lists:nth(Count * 99 div 100 + 1, Sorted)}).

request(Far, N) ->
    Start = erlang:monotonic_time(),
    Far ! {number, self(), N},
    receive {number, N} -> erlang:monotonic_time() - Start end.

fan_out(Options) ->
    Count = lab_peer:number("count", Options, 20000),
    Members = lab_peer:number("members", Options, 16),
    Text = text(Options),
    Far = {far, far_node()},
    Far ! {members, self(), Members},
    All = receive {members, Pids} -> Pids end,
    Processors = processors(Far),
    {Seconds, Got} = lab_peer:elapsed(fun() ->
        publish(Count, All, Text),
        lists:sum([noted(Member) || Member <- All])
    end),
    result(Seconds, Count * Members, Count * Members - Got, processors(Far) - Processors, #{}).

publish(0, _, _) -> ok;
publish(Left, All, Text) -> [Member ! {note, Text} || Member <- All], publish(Left - 1, All, Text).

result(Seconds, Units, Lost, Processors, More) ->
    {Seconds, Units, Lost =:= 0, More#{lost => float(Lost), processor_ns_per_unit => Processors * 1.0e9 / Units}}.

text(Options) -> binary:copy(<<"x">>, lab_peer:number("size", Options, 64)).

noted(Far) ->
    Far ! {how_many, self()},
    receive {noted, N} -> N end.

%% Waits until the far node is there.
far_node() ->
    [Far] = [Word || Word <- init:get_plain_arguments(), string:prefix(Word, "far@") =/= nomatch],
    Node = list_to_atom(Far),
    connect(Node, 500),
    Node.

connect(Node, Left) when Left > 0 ->
    case net_adm:ping(Node) =:= pong andalso ready(Node) of
        true -> ok;
        false -> timer:sleep(20), connect(Node, Left - 1)
    end.

%% Connected is not yet registered.
ready(Node) ->
    {far, Node} ! {number, self(), ready},
    receive {number, ready} -> true after 200 -> false end.

%% Seconds of processor time that both emulators have used.
processors(Far) ->
    Far ! {os_pid, self()},
    Pid = receive {os_pid, P} -> P end,
    processor("self") + processor(Pid).

processor(Pid) ->
    {ok, Text} = file:read_file("/proc/" ++ Pid ++ "/stat"),
    [_, Rest] = string:split(binary_to_list(Text), ") ", trailing),
    Words = string:lexemes(Rest, " "),
    (list_to_integer(lists:nth(12, Words)) + list_to_integer(lists:nth(13, Words))) / 100.
