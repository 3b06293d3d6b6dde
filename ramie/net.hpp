// Sockets, pipes, files, child processes, signals: input and output that suspends the fiber that waits for it.
#pragma once

#include <ramie/net/any_stream.hpp>
#include <ramie/net/buffered.hpp>
#include <ramie/net/child.hpp>
#include <ramie/net/copy.hpp>
#include <ramie/net/datagram.hpp>
#include <ramie/net/endpoint.hpp>
#include <ramie/net/file.hpp>
#include <ramie/net/listener.hpp>
#include <ramie/net/pipe.hpp>
#include <ramie/net/ready.hpp>
#include <ramie/net/resolve.hpp>
#include <ramie/net/select.hpp>
#include <ramie/net/signals.hpp>
#include <ramie/net/stream.hpp>
#include <ramie/net/watch.hpp>
#include <ramie/patterns/active.hpp>
#include <ramie/patterns/active_socket.hpp>
#include <ramie/patterns/serve.hpp>
#include <ramie/poll/io_error.hpp>
