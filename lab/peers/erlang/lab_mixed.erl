%% Experiment 3, the mixed case.
-module(lab_mixed).
-export([run/1]).

-define(PRODUCT, 28350160440309881).

run(Options) ->
    Rings = lab_peer:number("rings", Options, 20),
    Size = lab_peer:number("ring-size", Options, 50),
    Token = lab_peer:number("token", Options, 10000),
    Repetitions = lab_peer:number("repetitions", Options, 5),
    Factorise = not lab_peer:flag("messages-only", Options),
    Wanted = if Factorise -> Rings * Repetitions; true -> 0 end,
    Self = self(),
    {Seconds, {Messages, Right}} = lab_peer:elapsed(fun() ->
        [spawn_link(fun() -> master(Self, Size, Token, Repetitions, Factorise) end) || _ <- lists:seq(1, Rings)],
        collect(Rings, Wanted, 0, 0)
    end),
    Units = Rings * Repetitions * Size * (Token + 1),
    {Seconds, Units, Messages =:= Units andalso Right =:= Wanted, #{}}.

collect(0, 0, Messages, Right) -> {Messages, Right};
collect(Masters, Results, Messages, Right) ->
    receive
        {factors, [A, B]} when A * B =:= ?PRODUCT -> collect(Masters, Results - 1, Messages, Right + 1);
        {factors, _} -> collect(Masters, Results - 1, Messages, Right);
        {master_done, Passed} -> collect(Masters - 1, Results, Messages + Passed, Right)
    end.

%% Builds its rings one after the other.
master(Collector, Size, Token, Repetitions, Factorise) ->
    Worker = spawn_link(fun() -> worker(Collector) end),
    Rounds = rings(Worker, Size, Token, Repetitions, Factorise, 0),
    Worker ! stop,
    Collector ! {master_done, Rounds * Size}.

rings(_, _, _, 0, _, Rounds) -> Rounds;
rings(Worker, Size, Token, Left, Factorise, Rounds) ->
    if Factorise -> Worker ! {factorise, ?PRODUCT}; true -> ok end,
    First = build(Size - 1, self()),
    First ! {token, Token},
    rings(Worker, Size, Token, Left - 1, Factorise, Rounds + turn(First, 0)).

%% From the last to the first, so that each knows its next one when it starts.
build(0, Next) -> Next;
build(Left, Next) -> build(Left - 1, spawn_link(fun() -> link_of(Next) end)).

link_of(Next) ->
    receive
        {token, 0} -> Next ! {token, 0};
        Message -> Next ! Message, link_of(Next)
    end.

turn(First, Rounds) ->
    receive
        {token, 0} -> Rounds + 1;
        {token, N} -> First ! {token, N - 1}, turn(First, Rounds + 1)
    end.

worker(Collector) ->
    receive
        {factorise, N} -> Collector ! {factors, factors(N, 2, [])}, worker(Collector);
        stop -> ok
    end.

%% Trial division as the original has it: no end at the square root.
factors(N, D, Found) when D >= N -> lists:reverse([N | Found]);
factors(N, D, Found) when N rem D =:= 0 -> factors(N div D, D, [D | Found]);
factors(N, 2, Found) -> factors(N, 3, Found);
factors(N, D, Found) -> factors(N, D + 2, Found).
