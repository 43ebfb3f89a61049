/* A WebAssembly module receives no signals: signal masks are empty words. */
#ifndef BERTH_WEB_SIGNAL_H
#define BERTH_WEB_SIGNAL_H

typedef unsigned sigset_t;
#define SIG_SETMASK 2
#define SIGILL 4
#define SIGBUS 7
#define SIGFPE 8
#define SIGSEGV 11

static inline int sigfillset(sigset_t *set) {
  *set = ~0u;
  return 0;
}

static inline int sigdelset(sigset_t *set, int number) {
  *set &= ~(1u << number);
  return 0;
}

#endif
