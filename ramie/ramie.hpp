// All of ramie but net.hpp and parallel.hpp. What a user may include lies right here in ramie/; what is in its folders
// may change at any time.
#pragma once

#include <ramie/actor.hpp>
#include <ramie/channel.hpp>
#include <ramie/fiber.hpp>
#include <ramie/inspect.hpp>
#include <ramie/runtime.hpp>
#include <ramie/sync.hpp>
#include <ramie/version.hpp>
