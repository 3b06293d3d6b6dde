%% The frame: reads the options, runs and times a workload, prints ramie-lab's JSON object.
-module(lab_peer).
-export([main/0, number/3, flag/2, elapsed/1]).

%% {function that runs once with the options, unit}; it returns {Seconds, Units, Ok, Figures}.
workload("skynet", "message") -> {fun lab_trees:skynet/1, "fiber"};
workload("sum", "message") -> {fun lab_trees:sum/1, "process"};
workload("pingpong", "message") -> {fun lab_messages:pingpong/1, "message"};
workload("overhead", "message") -> {fun lab_messages:overhead/1, "call"};
workload("mixed", "message") -> {fun lab_mixed:run/1, "message"};
workload("thread_ring", "message") -> {fun lab_savina:thread_ring/1, "message"};
workload("counting", "message") -> {fun lab_savina:counting/1, "message"};
workload("fork_join_throughput", "message") -> {fun lab_savina:fork_join_throughput/1, "message"};
workload("big", "message") -> {fun lab_savina:big/1, "message"};
workload("chameneos", "message") -> {fun lab_savina:chameneos/1, "message"};
workload("yield", "processes") -> {fun lab_small:yield/1, "switch"};
workload("spawn", "join") -> {fun lab_small:spawn_join/1, "fiber"};
workload("spawn", "batch_join") -> {fun lab_small:spawn_batches/1, "fiber"};
workload("timers", "cancel") -> {fun lab_small:timers_cancel/1, "timer"};
workload("timers", "fire") -> {fun lab_small:timers_fire/1, "timer"};
workload("memory", "message") -> {fun lab_small:memory/1, "fiber"};
workload("idle_actors", "message") -> {fun lab_small:idle_actors/1, "actor"};
workload("ticker", "message") -> {fun lab_small:ticker/1, "tick"};
workload("across_tell", "message") -> {fun lab_across:tell/1, "message"};
workload("across_ask", "message") -> {fun lab_across:ask/1, "request"};
workload("across_fan_out", "message") -> {fun lab_across:fan_out/1, "message"};
workload("supervision", "tree") -> {fun lab_supervision:tree/1, "crash"};
workload("supervision", "restart") -> {fun lab_supervision:restart/1, "crash"};
workload(Name, Style) -> fail(["there is no workload ", Name, " in style ", Style]).

main() ->
    [Name | Words] = case init:get_plain_arguments() of
                         [] -> fail(["which workload?"]);
                         Given -> Given
                     end,
    Options = maps:from_list([option(Word) || Word <- Words, string:prefix(Word, "far@") =:= nomatch]),
    Name =/= "echo_server" orelse lab_echo:serve(),
    Style = maps:get("style", Options, "message"),
    {Run, Unit} = workload(Name, Style),
    Base = status_bytes("VmRSS:"),
    Warm = [in_own_process(Run, Options) || _ <- lists:seq(1, number("warmup", Options, 1))],
    Runs = [run_measured(Run, Options) || _ <- lists:seq(1, number("runs", Options, 5))],
    Ok = lists:all(fun({_, _, Right, _}) -> Right end, Warm ++ Runs),
    [{_, Units, _, _} | _] = Runs,
    Seconds = [S || {S, _, _, _} <- Runs],
    Figures = figures([F || {_, _, _, F} <- Runs]),
    io:format("{\"system\":\"erlang\",\"version\":\"OTP ~s\",\"workload\":\"~s\",\"style\":\"~s\",\"workers\":~b,"
              "\"unit\":\"~s\",\"units\":~b,\"seconds\":~s,\"ns_per_unit\":~w,\"peak_rss_bytes\":~b,"
              "\"base_rss_bytes\":~b,\"ok\":~s~s}~n",
              [erlang:system_info(otp_release), Name, Style, erlang:system_info(schedulers_online), Unit, Units,
               numbers(Seconds), median(Seconds) * 1.0e9 / Units, status_bytes("VmHWM:"), Base, Ok, Figures]),
    halt(if Ok -> 0; true -> 1 end).

fail(Text) ->
    io:format(standard_error, "erlang lab_peer: ~s~n", [Text]),
    halt(2).

%% "--name=value", or "--name", which is true.
option("--" ++ Word) ->
    case string:split(Word, "=") of
        [Name, Value] -> {Name, Value};
        [Name] -> {Name, "1"}
    end;
option(Word) -> fail(["unexpected argument ", Word]).

number(Name, Options, Standard) ->
    case Options of
        #{Name := Text} -> list_to_integer(Text);
        _ -> Standard
    end.

flag(Name, Options) -> number(Name, Options, 0) =/= 0.

%% A measured run repeats the work until it has taken as long as was asked for. The result is the mean of one.
run_measured(Run, Options) ->
    repeat(Run, Options, in_own_process(Run, Options), 1).

repeat(Run, Options, {Seconds, Units, Ok, Figures} = All, Repeats) ->
    case Ok andalso Seconds * 1000 < number("least-ms", Options, 0) andalso Repeats < 1000000 of
        true ->
            timer:sleep(number("pause-ms", Options, 0)),
            {More, _, MoreOk, MoreFigures} = in_own_process(Run, Options),
            Sums = maps:map(fun(Name, Sum) -> Sum + maps:get(Name, MoreFigures) end, Figures),
            repeat(Run, Options, {Seconds + More, Units, MoreOk, Sums}, Repeats + 1);
        false when Repeats =:= 1 -> All;
        false -> {Seconds / Repeats, Units, Ok, maps:map(fun(_, Sum) -> Sum / Repeats end, Figures)}
    end.

%% So that no run inherits the heap, or messages, of the one before.
in_own_process(Run, Options) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({result, Run(Options)}) end),
    receive
        {'DOWN', Monitor, process, _, {result, Result}} -> Result;
        {'DOWN', Monitor, process, _, Reason} -> fail(io_lib:format("~p", [Reason]))
    end.

%% {Seconds, what Fun returns}.
elapsed(Fun) ->
    Start = erlang:monotonic_time(),
    Value = Fun(),
    Stop = erlang:monotonic_time(),
    {erlang:convert_time_unit(Stop - Start, native, nanosecond) / 1.0e9, Value}.

figures([First | _] = All) when map_size(First) > 0 ->
    Each = [io_lib:format("\"~s\":~s", [Name, numbers([float(maps:get(Name, F)) || F <- All])]) || Name <- maps:keys(First)],
    [",\"figures\":{", lists:join(",", Each), "}"];
figures(_) -> "".

numbers(Values) -> ["[", lists:join(",", [io_lib:format("~w", [V]) || V <- Values]), "]"].

median(Values) ->
    Sorted = lists:sort(Values),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.

status_bytes(Field) ->
    {ok, Text} = file:read_file("/proc/self/status"),
    [_, Rest] = binary:split(Text, list_to_binary(Field)),
    {Kib, _} = string:to_integer(string:trim(Rest, leading)),
    Kib * 1024.
