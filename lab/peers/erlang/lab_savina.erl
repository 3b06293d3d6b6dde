%% Classic actor programs of the Savina suite. What counts as a message is as in ramie's own.
-module(lab_savina).
-export([thread_ring/1, counting/1, fork_join_throughput/1, big/1, chameneos/1]).

%% A token goes round a ring until its hops are used up.
thread_ring(Options) ->
    Nodes = lab_peer:number("nodes", Options, 100),
    Hops = lab_peer:number("hops", Options, 2000000),
    Self = self(),
    {Seconds, Last} = lab_peer:elapsed(fun() ->
        Ring = [spawn(fun() -> receive {next, Next} -> ring_node(Next, Self) end end) || _ <- lists:seq(1, Nodes)],
        [Node ! {next, Next} || {Node, Next} <- lists:zip(Ring, tl(Ring) ++ [hd(Ring)])],
        hd(Ring) ! Hops,
        Left = receive {left, N} -> N end,
        [Node ! stop || Node <- Ring],
        Left
    end),
    {Seconds, Hops + 1, Last =:= 0, #{}}.

ring_node(Next, Parent) ->
    receive
        0 -> Parent ! {left, 0}, ring_node(Next, Parent);
        Left when is_integer(Left) -> Next ! Left - 1, ring_node(Next, Parent);
        stop -> ok
    end.

%% One sends increments without a pause, and then asks.
counting(Options) ->
    Count = lab_peer:number("count", Options, 1000000),
    Self = self(),
    {Seconds, Counted} = lab_peer:elapsed(fun() ->
        Counter = spawn(fun() -> counter(0) end),
        spawn(fun() -> increments(Count, Counter), Counter ! {get, Self} end),
        receive {counted, N} -> N end
    end),
    {Seconds, Count, Counted =:= Count, #{}}.

increments(0, _) -> ok;
increments(Left, Counter) -> Counter ! increment, increments(Left - 1, Counter).

counter(Count) ->
    receive
        increment -> counter(Count + 1);
        {get, From} -> From ! {counted, Count}
    end.

%% Many messages to few processes.
fork_join_throughput(Options) ->
    Actors = lab_peer:number("actors", Options, 60),
    Messages = lab_peer:number("messages", Options, 10000),
    Self = self(),
    {Seconds, Right} = lab_peer:elapsed(fun() ->
        All = [spawn(fun() -> worker(Messages, 0, Self) end) || _ <- lists:seq(1, Actors)],
        rounds(Messages, All),
        lists:sum([receive {right, N} -> N end || _ <- All])
    end),
    {Seconds, Actors * Messages, Right =:= Actors * Messages, #{}}.

rounds(0, _) -> ok;
rounds(Left, All) -> [Worker ! 37.2 + Left || Worker <- All], rounds(Left - 1, All).

worker(0, Right, Parent) -> Parent ! {right, Right};
worker(Left, Right, Parent) ->
    receive
        Of ->
            Sine = math:sin(Of),
            worker(Left - 1, if Sine * Sine =< 1.0 -> Right + 1; true -> Right end, Parent)
    end.

%% Each pings random others and waits for each answer.
big(Options) ->
    Actors = lab_peer:number("actors", Options, 120),
    Pings = lab_peer:number("pings", Options, 10000),
    Self = self(),
    {Seconds, Pongs} = lab_peer:elapsed(fun() ->
        Each = [spawn(fun() -> receive {all, All} -> ping(All, Pings, 0, rand:mwc59_seed(N), Self) end end) || N <- lists:seq(1, Actors)],
        All = list_to_tuple(Each),
        [Player ! {all, All} || Player <- Each],
        Sum = lists:sum([receive {pongs, N} -> N end || _ <- Each]),
        [Player ! stop || Player <- Each],
        Sum
    end),
    {Seconds, 2 * Actors * Pings, Pongs =:= Actors * Pings, #{}}.

ping(_, 0, Pongs, _, Parent) -> Parent ! {pongs, Pongs}, answer_only();
ping(All, Left, Pongs, Seed, Parent) ->
    Next = rand:mwc59(Seed),
    element((rand:mwc59_value32(Next) * tuple_size(All)) bsr 32 + 1, All) ! {ping, self()},
    wait_for_pong(All, Left, Pongs, Next, Parent).

wait_for_pong(All, Left, Pongs, Seed, Parent) ->
    receive
        {ping, From} -> From ! pong, wait_for_pong(All, Left, Pongs, Seed, Parent);
        pong -> ping(All, Left - 1, Pongs + 1, Seed, Parent)
    end.

answer_only() ->
    receive
        {ping, From} -> From ! pong, answer_only();
        stop -> ok
    end.

%% Creatures meet in pairs and change their colours.
chameneos(Options) ->
    Creatures = lab_peer:number("creatures", Options, 100),
    Meetings = lab_peer:number("meetings", Options, 200000),
    Self = self(),
    {Seconds, Sum} = lab_peer:elapsed(fun() ->
        Mall = spawn(fun() -> mall(Meetings, none, Creatures, 0, Self) end),
        [spawn(fun() -> Mall ! {meet, self(), N rem 3}, creature(Mall, N rem 3, 0) end) || N <- lists:seq(0, Creatures - 1)],
        receive {sum, N} -> N end
    end),
    {Seconds, 4 * Meetings, Sum =:= 2 * Meetings, #{}}.

mall(_, _, 0, Sum, Parent) -> Parent ! {sum, Sum};
mall(Left, Waiting, Creatures, Sum, Parent) ->
    receive
        {meet, Who, _} when Left =:= 0 -> Who ! closed, mall(0, none, Creatures, Sum, Parent);
        {meet, Who, _} when Waiting =:= none -> mall(Left, Who, Creatures, Sum, Parent);
        {meet, Who, Colour} -> Waiting ! {met, Who, Colour}, mall(Left - 1, none, Creatures, Sum, Parent);
        {met, Count} -> mall(Left, Waiting, Creatures - 1, Sum + Count, Parent)
    end.

creature(Mall, Colour, Count) ->
    receive
        {met, Other, Of} ->
            Mine = complement(Colour, Of),
            Other ! {change, Mine},
            Mall ! {meet, self(), Mine},
            creature(Mall, Mine, Count + 1);
        {change, To} -> Mall ! {meet, self(), To}, creature(Mall, To, Count + 1);
        closed -> Mall ! {met, Count}
    end.

complement(A, A) -> A;
complement(A, B) -> 3 - A - B.
