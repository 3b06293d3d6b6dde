// The server of experiment 6, which ramie-lab starts itself as.
#pragma once

namespace ramie::lab {

/// The hidden command that runs serve_echo().
inline constexpr const char* echo_server_command = "echo_server";

/// Serves as lab/load/measure.hpp says, until it is killed.
int serve_echo(int workers);

}  // namespace ramie::lab
