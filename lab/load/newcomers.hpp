// Connections that are opened beside busy ones: how long each waits for the first answer.
#pragma once

#include <lab/load/drive.hpp>
#include <lab/load/histogram.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>

namespace ramie::lab {

class newcomers {
 public:
  /// From now on, by a thread of its own, opens `rate` connections a second, one after the other; each sends one
  /// message of `how`, and closes when it has the answer. Its time counts from when it was due until then, with the
  /// opening.
  newcomers(const load_options& how, std::int64_t rate);
  newcomers(const newcomers&) = delete;
  newcomers& operator=(const newcomers&) = delete;
  ~newcomers();

  /// Those that were due before, at least one. Once. Throws lab_error if one got no answer, or a wrong one.
  histogram stop();

 private:
  void come(load_options how, std::int64_t rate);

  std::atomic<bool> stops_{false};
  histogram times_;
  std::exception_ptr failure_;
  std::thread thread_;  // the last one: it uses the others
};

}  // namespace ramie::lab
