// librdkafka's objects, and the wait for its queues.
#pragma once

#include <ramie/kafka.hpp>
#include <ramie/net.hpp>

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <memory>
#include <string>

namespace ramie::kafka {

template <auto Function>
struct destroy_by {
  template <class T>
  void operator()(T* t) const noexcept {
    Function(t);
  }
};
using queue_ptr = std::unique_ptr<rd_kafka_queue_t, destroy_by<rd_kafka_queue_destroy>>;
using event_ptr = std::unique_ptr<rd_kafka_event_t, destroy_by<rd_kafka_event_destroy>>;
using list_ptr = std::unique_ptr<rd_kafka_topic_partition_list_t, destroy_by<rd_kafka_topic_partition_list_destroy>>;
using failure_ptr = std::unique_ptr<rd_kafka_error_t, destroy_by<rd_kafka_error_destroy>>;

/// Settings, which become a client or are freed.
class configuration {
 public:
  explicit configuration(const options& o);
  void set(const std::string& name, const std::string& value);
  [[nodiscard]] std::string get(const char* name) const;
  /// Suspends: librdkafka's start loads and initialises other libraries, and is run on a helper thread. Throws
  /// kafka_error.
  [[nodiscard]] rd_kafka_t* make(rd_kafka_type_t type, int events);

 private:
  std::unique_ptr<rd_kafka_conf_t, destroy_by<rd_kafka_conf_destroy>> all_;
};

/// A queue of librdkafka's, with an eventfd that it makes readable when something comes into the empty queue.
class watched_queue {
 public:
  explicit watched_queue(queue_ptr q);
  watched_queue(const watched_queue&) = delete;
  watched_queue& operator=(const watched_queue&) = delete;
  ~watched_queue();

  /// What is there; null if nothing is. Does not suspend.
  [[nodiscard]] event_ptr poll() noexcept { return event_ptr{rd_kafka_queue_poll(queue_.get(), 0)}; }
  /// To be called when poll() has found nothing. May return although there is nothing. Suspends. Throws `cancelled`.
  void wait();
  [[nodiscard]] rd_kafka_queue_t* get() const noexcept { return queue_.get(); }

 private:
  queue_ptr queue_;
  int fd_;
};

/// "Local: Queue full (_QUEUE_FULL)", with what is known besides.
[[nodiscard]] kafka_error error_of(rd_kafka_resp_err_t code, const std::string& more = {}, bool is_fatal = false);
/// Does nothing for null; frees it.
void throw_if(rd_kafka_error_t* failed);
void throw_if(rd_kafka_resp_err_t code);

[[nodiscard]] std::string problem_of(rd_kafka_event_t* e);

}  // namespace ramie::kafka
