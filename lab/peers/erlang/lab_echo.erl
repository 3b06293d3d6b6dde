%% The server of experiment 6, which ramie-lab's load drives: a process for each connection, which owns its socket.
-module(lab_echo).
-export([serve/0]).

%% Serves until the emulator is killed.
serve() ->
    {ok, Listener} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}, {backlog, 4096}, {nodelay, true},
                                        {packet, raw}]),
    {ok, Port} = inet:port(Listener),
    io:format("port ~b~n", [Port]),
    accept(Listener).

accept(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive ready -> echo(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! ready,
    accept(Listener).

echo(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} ->
            ok = gen_tcp:send(Socket, Data),
            echo(Socket);
        {error, _} -> gen_tcp:close(Socket)
    end.
