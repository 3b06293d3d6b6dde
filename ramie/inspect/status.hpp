// What components and programs show of themselves beside their runtimes: tables, which dumps, the inspector and
// Prometheus' text have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {

struct status_table {
  std::string name;                  // lower-case letters, digits and _, as "cluster_links"
  std::string help;                  // a sentence
  std::vector<std::string> labels;   // columns of text, which together tell rows apart; named like tables
  std::vector<std::string> figures;  // columns of numbers, the unit last; one that only grows ends in _total
  struct row {
    std::vector<std::string> labels;
    std::vector<std::uint64_t> figures;
  };
  std::vector<row> rows;
};

/// Where a dump writes. Neither allocates nor waits.
class status_text {
 public:
  virtual status_text& operator<<(std::string_view text) noexcept = 0;
  virtual status_text& operator<<(std::uint64_t number) noexcept = 0;

 protected:
  ~status_text() = default;
};

class status_source {
 public:
  /// Called on any thread; must not suspend, nor register anything. May throw std::bad_alloc.
  [[nodiscard]] virtual std::vector<status_table> tables() const = 0;
  /// For a dump, perhaps in a signal handler: must neither allocate nor wait for a lock. Whole lines.
  virtual void dump(status_text& to) const noexcept = 0;

 protected:
  ~status_source() = default;
};

/// While it lives, `of` is shown.
class status_registration {
 public:
  /// Any thread. Throws std::bad_alloc.
  explicit status_registration(const status_source& of);
  status_registration(const status_registration&) = delete;
  status_registration& operator=(const status_registration&) = delete;
  /// Blocks while somebody looks at it. Any thread.
  ~status_registration();

 private:
  const status_source* of_;
};

/// All that is shown; tables of one name and the same columns are one. Any thread; does not suspend. Throws
/// std::bad_alloc.
[[nodiscard]] std::vector<status_table> status_tables();

/// In Prometheus' text format: a metric `ramie_<table>_<figure>` for each figure, with the labels of its row.
[[nodiscard]] std::string to_prometheus(std::span<const status_table> all);

namespace detail {
class text_writer;
/// Async-signal-safe.
void dump_status(text_writer& to) noexcept;
}  // namespace detail

}  // namespace ramie
