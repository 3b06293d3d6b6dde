// The topology as Linux reports it, in files below /sys/devices/system:
//   cpu/cpuN/topology/core_cpus_list (older kernels: thread_siblings_list)   the CPUs that share the core
//   cpu/cpuN/topology/physical_package_id                                    the package
//   cpu/cpuN/cache/indexM/{level,type,shared_cpu_list}                       the CPUs that share each cache
//   node/online, node/nodeN/{cpulist,distance}                               the memory, and the distance to others
// Each may be missing or wrong: containers hide them, hypervisors make them up, CPUs go offline meanwhile. A list that
// does not name its own CPU is ignored, and what is unknown separates no CPUs.
#include <ramie/machine/topology.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace ramie::detail {

namespace {

constexpr int caches_most = 16;  // of one CPU; real ones have four or five

std::optional<std::string> line_of(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

long number_in(const std::string& path, long otherwise) {
  const std::optional<std::string> line = line_of(path);
  long value = 0;
  if (!line || std::from_chars(line->data(), line->data() + line->size(), value).ec != std::errc{}) return otherwise;
  return value >= 0 && value <= std::numeric_limits<int>::max() ? value : otherwise;
}

/// "0-3,8": the numbers, in order; nothing if it is anything else.
std::vector<int> list_in(const std::string& path) {
  const std::optional<std::string> line = line_of(path);
  std::vector<int> all;
  if (!line) return all;
  const char* at = line->data();
  const char* const end = at + line->size();
  while (at != end) {
    int first = 0;
    const auto begin = std::from_chars(at, end, first);
    if (begin.ec != std::errc{} || first < 0 || first >= topology::cpus_most) return {};
    int last = first;
    at = begin.ptr;
    if (at != end && *at == '-') {
      const auto rest = std::from_chars(at + 1, end, last);
      if (rest.ec != std::errc{} || last < first || last >= topology::cpus_most) return {};
      at = rest.ptr;
    }
    for (int i = first; i <= last; ++i) all.push_back(i);
    if (at == end) break;
    if (*at != ',') return {};
    ++at;
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Groups of CPUs, each under the number of its first one. A CPU that is in a group already stays there.
class groups {
 public:
  [[nodiscard]] bool has(int cpu) const { return of_.contains(cpu); }
  [[nodiscard]] long of(int cpu) const {
    const auto place = of_.find(cpu);
    return place == of_.end() ? -1 : place->second;
  }
  void add(const std::vector<int>& members, int self) {
    if (!std::binary_search(members.begin(), members.end(), self)) return;
    for (const int cpu : members) of_.try_emplace(cpu, members.front());
  }

 private:
  std::map<int, long> of_;
};

/// The known data and unified caches of a CPU, nearest first.
void read_caches(const std::string& directory, int cpu, groups& cores, groups& last_caches) {
  std::map<long, std::vector<int>> shared_by;  // by level
  for (int i = 0; i < caches_most; ++i) {
    const std::string cache = directory + "/cache/index" + std::to_string(i);
    const long level = number_in(cache + "/level", -1);
    if (level < 0) break;
    if (level < 2 || line_of(cache + "/type") == "Instruction") continue;
    std::vector<int> members = list_in(cache + "/shared_cpu_list");
    if (!members.empty()) shared_by[level] = std::move(members);
  }
  if (shared_by.empty()) return;
  last_caches.add(shared_by.rbegin()->second, cpu);
  // Below the last one: small cores of hybrid machines share their second level.
  if (shared_by.size() > 1) cores.add(shared_by.begin()->second, cpu);
}

struct node_facts {
  std::map<int, long> of_cpu;
  std::map<long, std::map<long, unsigned>> distances;
};

node_facts read_nodes(const std::string& root) {
  node_facts nodes;
  const std::vector<int> online = list_in(root + "/node/online");
  for (const int node : online) {
    const std::string directory = root + "/node/node" + std::to_string(node);
    for (const int cpu : list_in(directory + "/cpulist")) nodes.of_cpu.try_emplace(cpu, node);
    std::istringstream distances{line_of(directory + "/distance").value_or("")};
    unsigned value = 0;
    for (std::size_t i = 0; i < online.size() && distances >> value; ++i) nodes.distances[node][online[i]] = value;
  }
  return nodes;
}

/// Nodes of memory, each in as many parts as it has packages: CPUs that share a node's memory across packages share no
/// cache.
class node_parts {
 public:
  /// The number of the part of `node` in `package`, for topology::add; -1: not known. Throws std::bad_alloc.
  long of(long node, long package) {
    const long part = node < 0 && package < 0 ? 0 : (node + 1) * (1L << 20) + ((package + 1) & 0xfffff);
    node_of_[part] = node;
    return part;
  }
  /// Tells `t` how far all parts are from each other. `distance(from, to)`, of two nodes: 0 if it is not known.
  template <class Distance>
  void connect(topology& t, Distance distance) const {
    constexpr unsigned same_node = 11;  // 10 would be the own part
    for (const auto& [from_part, from] : node_of_)
      for (const auto& [to_part, to] : node_of_) {
        if (from_part == to_part) continue;
        const unsigned value = from == to && from >= 0 ? same_node : distance(from, to);
        if (value != 0) t.set_distance(from_part, to_part, value);
      }
  }

 private:
  std::map<long, long> node_of_;  // by part
};

}  // namespace

topology topology::of_system(const std::vector<int>& cpus, const std::string& prefix) {
  const std::string root = prefix + "/sys/devices/system";
  const node_facts nodes = read_nodes(root);
  groups cores;
  groups caches;
  const auto directory_of = [&](int cpu) { return root + "/cpu/cpu" + std::to_string(cpu); };
  const auto node_of = [&](int cpu) {
    const auto node = nodes.of_cpu.find(cpu);
    return node == nodes.of_cpu.end() ? -1 : node->second;
  };
  std::map<int, long> packages;
  std::map<long, long> package_of_node;  // one of them
  for (const int cpu : cpus) {
    const long package = number_in(directory_of(cpu) + "/topology/physical_package_id", -1);
    if (package < 0) continue;
    packages[cpu] = package;
    package_of_node.try_emplace(node_of(cpu), package);
  }
  topology t;
  node_parts parts;
  for (const int cpu : cpus) {
    const std::string directory = directory_of(cpu);
    if (!cores.has(cpu) || !caches.has(cpu)) read_caches(directory, cpu, cores, caches);
    if (!cores.has(cpu)) {
      cores.add(list_in(directory + "/topology/core_cpus_list"), cpu);
      cores.add(list_in(directory + "/topology/thread_siblings_list"), cpu);
    }
    const long node = node_of(cpu);
    const auto package = packages.find(cpu);
    long in_package = -1;
    if (package != packages.end()) in_package = package->second;
    else if (const auto usual = package_of_node.find(node); usual != package_of_node.end()) in_package = usual->second;
    t.add(cpu, cores.of(cpu), caches.of(cpu), parts.of(node, in_package));
  }
  parts.connect(t, [&](long from, long to) {
    const auto row = nodes.distances.find(from);
    if (row == nodes.distances.end()) return 0u;
    const auto d = row->second.find(to);
    return d == row->second.end() ? 0u : d->second;
  });
  t.finish();
  return t;
}

}  // namespace ramie::detail
