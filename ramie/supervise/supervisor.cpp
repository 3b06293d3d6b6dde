// What can be asked of supervisors from outside. How they go about their work is in supervisor_actor.cpp.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/supervise/supervisor_actor.hpp>
#include <ramie/task/region.hpp>

#include <new>

namespace ramie {

namespace detail {

namespace {

actor_options named(const std::string& name) {
  actor_options o;
  o.name = name;
  return o;
}

std::shared_ptr<supervisor_records> records_of_pool(const pool_options& options, std::shared_ptr<pool_core> pool) {
  auto records = make_records({.max_restarts = options.max_restarts,
                               .within = options.within,
                               .backoff = options.backoff,
                               .decide = options.decide,
                               .report = options.report});
  records->pool = std::move(pool);
  return records;
}

any_actor start_below(actor_cell& supervisor, const child_options& spec, const std::string& name,
                      std::shared_ptr<supervisor_records> records) {
  actor_options of_actor = spec.actor;
  if (!name.empty()) of_actor.name = name;
  return start_child(supervisor, spec,
                     make_child_maker<supervisor_actor, supervisor_actor>(std::move(of_actor), std::move(records)),
                     true);
}

template <class M>
auto ask(actor_cell& c, M m) {
  return actor_ref<supervisor_actor>{c}.ask(std::move(m));
}

}  // namespace

void supervise(actor_cell& child, actor_cell& supervisor, std::function<void(actor_cell&)> construct) {
  actor_extras& x = child.extras();
  x.construct = std::move(construct);
  x.report = &report_end;
  supervisor.add_reference();
  x.supervisor = &supervisor;
}

any_actor start_supervisor(const supervisor_options& options) {
  return spawn_actor<supervisor_actor>(named(options.name), make_records(options));
}

any_actor start_child(actor_cell& supervisor, const child_options& spec, child_maker make, bool is_supervisor) {
  start_outcome s = ask(supervisor, start_request{spec, std::move(make), is_supervisor});
  if (s.failure) std::rethrow_exception(s.failure);
  return std::move(s.who);
}

any_actor start_child_supervisor(actor_cell& supervisor, const child_options& spec, const supervisor_options& options) {
  return start_below(supervisor, spec, options.name, make_records(options));
}

any_actor start_pool(const pool_options& options, std::shared_ptr<pool_core> pool) {
  return spawn_actor<supervisor_actor>(named(options.name), records_of_pool(options, std::move(pool)));
}

any_actor start_child_pool(actor_cell& supervisor, const child_options& spec, const pool_options& options,
                           std::shared_ptr<pool_core> pool) {
  return start_below(supervisor, spec, options.name, records_of_pool(options, std::move(pool)));
}

bool stop_child_of(actor_cell& supervisor, const any_actor& child) { return ask(supervisor, stop_request{child}); }
std::vector<any_actor> children_of(actor_cell& supervisor) { return ask(supervisor, list_request{}); }
child_counts count_children_of(actor_cell& supervisor) { return ask(supervisor, counts_request{}); }
std::uint64_t restarts_of(actor_cell& supervisor) { return ask(supervisor, restarts_request{}); }

void end_supervisor(actor_cell& c) noexcept {
  region shield;
  shield.shield = true;
  for (bool open = false; !open;) {
    try {
      open_region(shield);
      open = true;
    } catch (const std::bad_alloc&) {
      // To end without having joined would leave children behind, and a destructor has nobody to tell.
      os_sleep(1'000'000);
    }
  }
  c.kill(exit_reason{exit_kind::shutdown});
  c.join(nullptr, false, std::source_location::current());
  close_region(shield);
}

namespace {

bool ask_by_id(actor_cell& c, id_request::what what, std::string_view id) {
  const id_answer a = ask(c, id_request{what, std::string{id}});
  if (a.failure) std::rethrow_exception(a.failure);
  return a.done;
}

void print_tree(const supervisor_ref& top, const std::string& label, std::size_t depth, std::string& out) {
  out += std::string(2 * depth, ' ') + label + '\n';
  std::vector<child_info> children;
  try {
    if (const std::string pool = ask(*top.cell(), pool_line_request{}); !pool.empty()) {
      out += std::string(2 * depth, ' ') + label.substr(0, label.size() - std::string_view{"supervisor"}.size()) +
             pool + '\n';
      return;
    }
    children = top.child_infos();
  } catch (const actor_down&) {
    return;  // it ends just now, or is being restarted
  }
  for (const child_info& c : children) {
    std::string line = c.id.empty() ? std::string{c.who.name()} : c.id;
    if (!line.empty()) line += ' ';
    if (c.supervisor) line += "supervisor";
    else line.append("(").append(c.type).append(")");
    if (c.state != child_state::running) line += c.state == child_state::stopped ? ", stopped" : ", restarting";
    if (c.restarts != 0) line += ", restarts: " + std::to_string(c.restarts);
    if (c.supervisor) print_tree(supervisor_ref{c.who}, line, depth + 1, out);
    else out += std::string(2 * (depth + 1), ' ') + line + '\n';
  }
}

}  // namespace
}  // namespace detail

bool supervisor_ref::stop_child(const any_actor& child) const { return detail::stop_child_of(*cell(), child); }
bool supervisor_ref::stop_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::stop, id);
}
bool supervisor_ref::restart_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::restart, id);
}
bool supervisor_ref::delete_child(std::string_view id) const {
  return detail::ask_by_id(*cell(), detail::id_request::what::forget, id);
}
any_actor supervisor_ref::find_child(std::string_view id) const {
  return detail::ask(*cell(), detail::id_request{detail::id_request::what::find, std::string{id}}).who;
}
std::vector<any_actor> supervisor_ref::children() const { return detail::children_of(*cell()); }
std::vector<child_info> supervisor_ref::child_infos() const { return detail::ask(*cell(), detail::info_request{}); }
child_counts supervisor_ref::count_children() const { return detail::count_children_of(*cell()); }
std::uint64_t supervisor_ref::restarts() const { return detail::restarts_of(*cell()); }
std::string supervisor_ref::tree() const {
  std::string out;
  std::string label{name()};
  label += label.empty() ? "supervisor" : " supervisor";
  detail::print_tree(*this, label, 0, out);
  return out;
}

supervisor::~supervisor() {
  if (*this) detail::end_supervisor(*cell());
}

}  // namespace ramie
