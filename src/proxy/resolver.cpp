// Names are looked up on threads of their own.
//
//   state of a lookup  event                                next      function, and its thread
//   -                  an allowed name                      waiting   ask(), proxy thread
//   waiting            a thread and its command are free    running   serve(), its threads
//   waiting            the connection is closed             -         forget()
//   waiting            there is no thread, nor a new one    done      ask(): with a problem
//   running            getaddrinfo() has returned           done      serve()
//   done               the descriptor was written to        -         take(), proxy thread
//
// What holds: getaddrinfo() is called without the mutex and cannot be stopped. A running lookup of
// a closed connection runs to its end, and its key then finds no connection. A thread keeps the
// resolver alive, so a lookup may outlast the proxy.

#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

Expected<std::shared_ptr<Resolver>> Resolver::create() {
  auto resolver = new_shared<Resolver>();
  resolver->done_event_.reset(above_standard_streams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!resolver->done_event_) return system_error(errno, "network: eventfd");
  resolver->self_ = resolver;
  return resolver;
}

void Resolver::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(done_event_.get(), &one, sizeof one);
}

void Resolver::ask(std::uint64_t key, std::uint64_t command, const Destination& wanted) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Lookup& lookup = waiting_.emplace_back();
  lookup.key = key;
  lookup.command = command;
  lookup.wanted = wanted;
  work_.notify_one();
  if (idle_ >= waiting_.size() || threads_ == most_threads) return;
  auto self = std::make_unique<std::shared_ptr<Resolver>>(self_.lock());
  pthread_t thread = {};
  if (start_thread(&thread, thread_main, self.get()) == 0) {
    (void)self.release();
    ::pthread_detach(thread);
    ++threads_;
  } else if (threads_ == 0) {
    lookup.problem = "there is no thread to look names up with";
    done_.splice(done_.end(), waiting_);
    wake();
  }
}

// Called for each connection that is closed.
void Resolver::forget(std::uint64_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.remove_if([key](const Lookup& lookup) { return lookup.key == key; });
}

std::list<Lookup> Resolver::take() {
  std::uint64_t count = 0;
  (void)!::read(done_event_.get(), &count, sizeof count);
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(done_, {});
}

void Resolver::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ending_ = true;
  work_.notify_all();
  wake();
}

void* Resolver::thread_main(void* self) {
  const std::unique_ptr<std::shared_ptr<Resolver>> resolver(
      static_cast<std::shared_ptr<Resolver>*>(self));
  (*resolver)->serve();
  return nullptr;
}

namespace {

void look_up(Lookup& lookup) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = lookup.wanted.literal ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(lookup.wanted.port);
  const int error = ::getaddrinfo(lookup.wanted.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    lookup.problem = ::gai_strerror(error);
    return;
  }
  for (const addrinfo* at = found; at && lookup.count < std::size(lookup.addresses);
       at = at->ai_next)
    if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
      std::memcpy(&lookup.addresses[lookup.count++], at->ai_addr, at->ai_addrlen);
  ::freeaddrinfo(found);
}

}  // namespace

// The first that may run now; the end of the list: none.
std::list<Lookup>::iterator Resolver::next() {
  const auto running = [this](std::uint64_t command) {
    return std::count(served_, served_ + most_threads, command);
  };
  return find_where(waiting_,
                    [&](const Lookup& lookup) { return running(lookup.command) < running(0); });
}

void Resolver::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    const auto found = next();
    if (found == waiting_.end()) {
      ++idle_;
      work_.wait(lock);
      --idle_;
      continue;
    }
    std::list<Lookup> own;
    std::uint64_t& served = *std::find(served_, served_ + most_threads, 0u);
    served = found->command;
    own.splice(own.end(), waiting_, found);
    lock.unlock();
    look_up(own.front());
    lock.lock();
    served = 0;
    done_.splice(done_.end(), own);
    wake();
  }
}

#endif

}  // namespace v0_1
}  // namespace codeexec
