// The server of experiment 6, which ramie-lab starts itself as.
#pragma once

#include <string>

namespace ramie::lab {

/// The hidden command that runs serve_echo().
inline constexpr const char* echo_server_command = "echo_server";

/// Serves as lab/load/measure.hpp says, until it is killed.
/// `style`: "fiber" or "actor".
int serve_echo(const std::string& style, int workers);

}  // namespace ramie::lab
