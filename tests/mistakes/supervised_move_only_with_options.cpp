// says: ramie::supervisor_ref::spawn_actor: the actor must be constructible from copies of these arguments
// As before.
#include <ramie/actor.hpp>

#include <memory>

class keeper : public ramie::actor<keeper> {
 public:
  explicit keeper(std::shared_ptr<int>) {}
  explicit keeper(std::unique_ptr<int>) {}
  void on(int) {}
};

void program(const ramie::supervisor_ref& above) {
#ifdef MENDED
  above.spawn_actor<keeper>(ramie::child_options{}, std::make_shared<int>(1));
#else
  above.spawn_actor<keeper>(ramie::child_options{}, std::make_unique<int>(1));
#endif
}
