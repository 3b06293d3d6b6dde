// says: ramie::supervisor_ref::spawn_actor: the actor must be constructible from copies of these arguments
// A child that is restarted is constructed again, and what was moved into the first one is gone.
#include <ramie/actor.hpp>

#include <memory>

class keeper : public ramie::actor<keeper> {
 public:
  explicit keeper(std::unique_ptr<int> kept) : kept_{std::move(kept)} {}
  void on(int) {}

 private:
  std::unique_ptr<int> kept_;
};

void program(const ramie::supervisor_ref& above) {
#ifdef MENDED
  above.spawn_actor_by<keeper>(ramie::child_options{}, [] { return keeper{std::make_unique<int>(1)}; });
#else
  above.spawn_actor<keeper>(std::make_unique<int>(1));
#endif
}
