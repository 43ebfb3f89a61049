/* pairwise_coupling of one row: class probabilities from those of each pair of classes.
 *
 * The method is the second one of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by Pairwise
 * Coupling" (2004), known from libsvm: p minimises p Q p, one component at a time, until all gradients are close to
 * each other. It stops early, so all implementations must stop at the same point: at most 100 rounds, an error below
 * 0.005 / classes, everything in f32. */
#ifndef BERTH_OPS_COUPLING_H
#define BERTH_OPS_COUPLING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define BERTH__COUPLING_ROUNDS 100
#define BERTH__COUPLING_ERROR 0.005f

static inline int64_t berth__coupling_pairs(int64_t classes) { return classes * (classes - 1) / 2; }

/* f32 that a row needs in addition to its result: Q, and Q p. */
static inline int64_t berth__coupling_room(int64_t classes) { return classes * classes + classes; }

/* r: for each pair i < j, the probability of i; (0, 1), (0, 2), ... */
static inline void berth__coupling_matrix(const float *r, int64_t n, float *q) {
  for (int64_t i = 0; i < n; i++) q[i * n + i] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++, r++) {
      const float other = 1 - *r;
      q[i * n + i] += other * other;
      q[j * n + j] += *r * *r;
      q[i * n + j] = q[j * n + i] = -other * *r;
    }
}

static inline bool berth__coupling_is_done(const float *q, int64_t n, const float *p, float *qp, float *pqp) {
  float most = 0;
  *pqp = 0;
  for (int64_t i = 0; i < n; i++) {
    qp[i] = 0;
    for (int64_t j = 0; j < n; j++) qp[i] += q[i * n + j] * p[j];
    *pqp += p[i] * qp[i];
  }
  for (int64_t i = 0; i < n; i++) {
    const float error = fabsf(qp[i] - *pqp);
    if (error > most) most = error;
  }
  return most < BERTH__COUPLING_ERROR / (float)n;
}

static inline void berth__couple(const float *r, int64_t n, float *p, float *room) {
  float *q = room, *qp = room + n * n, pqp;
  berth__coupling_matrix(r, n, q);
  for (int64_t i = 0; i < n; i++) p[i] = 1 / (float)n;
  for (int round = 0; round < BERTH__COUPLING_ROUNDS; round++) {
    if (berth__coupling_is_done(q, n, p, qp, &pqp)) return;
    for (int64_t i = 0; i < n; i++) {
      const float step = (pqp - qp[i]) / q[i * n + i], whole = 1 + step;
      p[i] += step;
      pqp = (pqp + step * (step * q[i * n + i] + 2 * qp[i])) / whole / whole;
      for (int64_t j = 0; j < n; j++) {
        qp[j] = (qp[j] + step * q[i * n + j]) / whole;
        p[j] /= whole;
      }
    }
  }
}

#endif
