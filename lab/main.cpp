#include <lab/commands/commands.hpp>

int main(int argc, char** argv) { return ramie::lab::run_command_line(argc, argv); }
