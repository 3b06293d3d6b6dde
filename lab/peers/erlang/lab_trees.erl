%% Experiments 1 and 2: a process a node; children send their sums to their parent.
-module(lab_trees).
-export([skynet/1, sum/1]).

skynet(Options) ->
    Leaves = lab_peer:number("leaves", Options, 1000000),
    Self = self(),
    {Seconds, Sum} = lab_peer:elapsed(fun() ->
        spawn(fun() -> tree_node(Self, 0, Leaves) end),
        receive Total -> Total end
    end),
    {Seconds, node_count(Leaves, 1), Sum =:= Leaves * (Leaves - 1) div 2, #{}}.

tree_node(Parent, First, 1) -> Parent ! First;
tree_node(Parent, First, Leaves) ->
    Part = Leaves div 10,
    Self = self(),
    children(Self, First, Part, 10),
    Parent ! collect(10, 0).

children(_, _, _, 0) -> ok;
children(Self, First, Part, Left) ->
    spawn(fun() -> tree_node(Self, First, Part) end),
    children(Self, First + Part, Part, Left - 1).

collect(0, Sum) -> Sum;
collect(Left, Sum) -> receive N -> collect(Left - 1, Sum + N) end.

node_count(1, Sum) -> Sum;
node_count(Leaves, Sum) -> node_count(Leaves div 10, Sum + Leaves).

sum(Options) ->
    High = lab_peer:number("high", Options, 10000000),
    Self = self(),
    {Seconds, Sum} = lab_peer:elapsed(fun() ->
        spawn(fun() -> part(Self, 1, High) end),
        receive Total -> Total end
    end),
    {Seconds, 2 * High - 1, Sum =:= High * (High + 1) div 2, #{}}.

part(Parent, Number, Number) -> Parent ! Number;
part(Parent, Low, High) ->
    Middle = Low + (High - Low) div 2,
    Self = self(),
    spawn(fun() -> part(Self, Low, Middle) end),
    spawn(fun() -> part(Self, Middle + 1, High) end),
    Parent ! collect(2, 0).
