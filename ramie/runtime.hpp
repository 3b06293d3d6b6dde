// Runtimes: workers, options, a scheduling policy of your own, errors.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/blocking.hpp>
#include <ramie/runtime/metrics.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sched/policy.hpp>
