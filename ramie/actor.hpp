// Actors and supervisors.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/actor/on_end.hpp>
#include <ramie/patterns/dead_letters.hpp>
#include <ramie/patterns/event_bus.hpp>
#include <ramie/patterns/group.hpp>
#include <ramie/patterns/message_trace.hpp>
#include <ramie/patterns/registry.hpp>
#include <ramie/patterns/router.hpp>
#include <ramie/patterns/state_machine.hpp>
#include <ramie/supervise/supervisor.hpp>
