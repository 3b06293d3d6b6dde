// Synchronisation as in std, for fibers and threads alike.
#pragma once

#include <ramie/future/async.hpp>
#include <ramie/future/future.hpp>
#include <ramie/future/join_set.hpp>
#include <ramie/future/packaged_task.hpp>
#include <ramie/future/promise.hpp>
#include <ramie/sync/barrier.hpp>
#include <ramie/sync/condition_variable.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/sync/limited_scope.hpp>
#include <ramie/sync/mutex.hpp>
#include <ramie/sync/once.hpp>
#include <ramie/sync/once_value.hpp>
#include <ramie/sync/recursive_mutex.hpp>
#include <ramie/sync/semaphore.hpp>
#include <ramie/sync/shared_mutex.hpp>
#include <ramie/sync/wait_group.hpp>
