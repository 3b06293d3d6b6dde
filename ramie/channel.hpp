// Channels, select, tickers, timers.
#pragma once

#include <ramie/channel/case_list.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/channel/ends.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/channel/ticker.hpp>
#include <ramie/channel/timer.hpp>
