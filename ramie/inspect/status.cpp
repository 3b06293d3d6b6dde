// The list is under a flag, not a mutex: a dump in a signal handler may have interrupted its holder, and only tries.
#include <ramie/inspect/status.hpp>

#include <ramie/inspect/text_writer.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace ramie {

namespace {

std::atomic_flag status_held = ATOMIC_FLAG_INIT;

/// Made by the first that is shown, not by a look, which may be that of a signal handler. Never destroyed: what is
/// shown may end after statics.
constinit std::vector<const status_source*>* made = nullptr;

std::span<const status_source* const> shown() noexcept {
  if (made == nullptr) return {};
  return *made;
}

class status_hold {
 public:
  status_hold() noexcept {
    while (status_held.test_and_set(std::memory_order_acquire)) status_held.wait(true, std::memory_order_relaxed);
  }
  status_hold(const status_hold&) = delete;
  status_hold& operator=(const status_hold&) = delete;
  ~status_hold() { give_back(); }
  static bool try_take() noexcept { return !status_held.test_and_set(std::memory_order_acquire); }
  static void give_back() noexcept {
    status_held.clear(std::memory_order_release);
    status_held.notify_all();
  }
};

void add_label(std::string& to, std::string_view name, std::string_view value) {
  if (to.size() > 1) to += ',';
  (to += name) += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') to += '\\';
    if (c == '\n') to += "\\n";
    else to += c;
  }
  to += '"';
}

std::string labels_of(const status_table& t, const status_table::row& r) {
  std::string text = "{";
  for (std::size_t i = 0; i < t.labels.size() && i < r.labels.size(); ++i) add_label(text, t.labels[i], r.labels[i]);
  return text + "}";
}

class text_of_status final : public status_text {
 public:
  explicit text_of_status(detail::text_writer& to) noexcept : to_{to} {}
  status_text& operator<<(std::string_view text) noexcept override {
    to_ << text;
    return *this;
  }
  status_text& operator<<(std::uint64_t number) noexcept override {
    to_ << number;
    return *this;
  }

 private:
  detail::text_writer& to_;
};

}  // namespace

status_registration::status_registration(const status_source& of) : of_{&of} {
  const status_hold hold;
  if (made == nullptr) made = new std::vector<const status_source*>;
  made->push_back(&of);
}

status_registration::~status_registration() {
  const status_hold hold;
  std::erase(*made, of_);
}

std::vector<status_table> status_tables() {
  std::vector<status_table> all;
  const status_hold hold;
  for (const status_source* one : shown())
    for (status_table& t : one->tables()) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const status_table& a) {
        return a.name == t.name && a.labels == t.labels && a.figures == t.figures;
      });
      if (same == all.end()) all.push_back(std::move(t));
      else std::move(t.rows.begin(), t.rows.end(), std::back_inserter(same->rows));
    }
  return all;
}

std::string to_prometheus(std::span<const status_table> all) {
  std::string text;
  for (const status_table& t : all)
    for (std::size_t f = 0; f < t.figures.size(); ++f) {
      const std::string name = "ramie_" + t.name + "_" + t.figures[f];
      text +=
          "# HELP " + name + " " + t.help + "\n# TYPE " + name + (name.ends_with("_total") ? " counter\n" : " gauge\n");
      for (const status_table::row& r : t.rows)
        if (f < r.figures.size()) text += name + labels_of(t, r) + " " + std::to_string(r.figures[f]) + "\n";
    }
  return text;
}

void detail::dump_status(text_writer& to) noexcept {
  if (!status_hold::try_take()) {
    to << "\nwhat components show is being looked at by others\n";
    return;
  }
  text_of_status text{to};
  if (!shown().empty()) to << "\n";
  for (const status_source* one : shown()) one->dump(text);
  status_hold::give_back();
}

}  // namespace ramie
