// Fibers, fork and join, scopes, parallel loops, cancellation.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/cancel_scope.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/fiber_local.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/fiber/join_handle.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/scoped_value.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/stop_token.hpp>
#include <ramie/fiber/this_fiber.hpp>
