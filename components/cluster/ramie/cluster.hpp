// Actors across machines, on NATS: the optional component ramie::cluster.
#pragma once

#include <ramie/cluster/cluster.hpp>
#include <ramie/cluster/wire.hpp>
