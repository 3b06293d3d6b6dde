// The version of ramie, written nowhere else: the build reads it from here.
#pragma once

#define RAMIE_VERSION_MAJOR 0
#define RAMIE_VERSION_MINOR 1
#define RAMIE_VERSION_PATCH 0
