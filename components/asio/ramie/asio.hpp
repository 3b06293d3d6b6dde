// Boost.Asio beside fibers, both ways, and C++20 coroutines: link ramie::asio.
//
//   ramie::asio::context io{rt};                                 // rt: the runtime
//   boost::asio::steady_timer t{io.get_executor(), 10ms};        // any object of Asio, or of a library on it
//   t.async_wait(ramie::asio::yield);                            // suspends this fiber
//   boost::asio::post(io.get_executor(), [] { ... });            // a fiber
#pragma once

#include <ramie/asio/context.hpp>
#include <ramie/asio/coroutine.hpp>
#include <ramie/asio/yield.hpp>
