// Parallel algorithms over ranges, pipelines, task graphs. How to choose: docs/parallel.md.
#pragma once

#include <ramie/parallel/blocks.hpp>
#include <ramie/parallel/compact.hpp>
#include <ramie/parallel/extremes.hpp>
#include <ramie/parallel/find.hpp>
#include <ramie/parallel/for_each.hpp>
#include <ramie/parallel/histogram.hpp>
#include <ramie/parallel/merge.hpp>
#include <ramie/parallel/partition.hpp>
#include <ramie/parallel/pipeline.hpp>
#include <ramie/parallel/ranges.hpp>
#include <ramie/parallel/reduce.hpp>
#include <ramie/parallel/scan.hpp>
#include <ramie/parallel/sort.hpp>
#include <ramie/parallel/stable_sort.hpp>
#include <ramie/parallel/task_graph.hpp>
