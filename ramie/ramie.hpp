// All of ramie's public headers.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/actor/dead_letters.hpp>
#include <ramie/actor/registry.hpp>
#include <ramie/base/error.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/join_handle.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/runtime.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
